"""Tables in, text out."""
