"""Small tasks whose dynamics are a table of outcomes."""
