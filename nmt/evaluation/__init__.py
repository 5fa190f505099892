"""Lines in, scores out."""
