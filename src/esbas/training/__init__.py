"""What `esbas train` does: any Gymnasium task, any portfolio, recorded in a folder."""
