"""The commands `esbas study ...`, one file each."""
