"""Corpora in, clean pairs out."""
