"""A model in, lines of text out."""
