"""Counting and estimating tokens, reading usage, learning the factor between the two."""
