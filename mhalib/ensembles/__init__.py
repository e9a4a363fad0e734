"""Attention heads as an ensemble of kernel regressions."""
