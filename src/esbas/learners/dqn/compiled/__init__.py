"""Networks without convolutions, compiled."""
