"""Clean pairs in, batches out."""
