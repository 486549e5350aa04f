"""Small environments whose dynamics are a table of outcomes."""
