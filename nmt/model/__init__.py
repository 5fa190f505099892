"""Batches in, logits out: the Transformer of Vaswani et al. 2017."""
