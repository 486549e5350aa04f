"""The commands of `esbas study`."""
