"""Theorems about multi-head attention, and the numbers that check them.

Shared modules: ``validation``, ``device``, ``scale``, ``estimate``, ``claims``, ``plotting``.
Theories: ``ensembles`` (heads as kernel regressions). Real models: ``heads``.
"""

__version__ = "0.1.0"
