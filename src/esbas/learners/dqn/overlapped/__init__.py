"""Networks that are trained beside the acting."""
