"""Fallback legs of a run: which they are, their bodies, and what their answers teach (design 5)."""
