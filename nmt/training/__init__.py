"""Logits in, checkpoints out."""
