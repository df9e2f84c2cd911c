"""Fallback legs: other models that may be sent the same projection in a body of their own (design 5; capacity spec 12)."""
