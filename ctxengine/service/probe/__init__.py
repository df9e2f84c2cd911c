"""Measuring what a model can use: the ladder run for real, and the profiles it leaves (capacity spec 1)."""
