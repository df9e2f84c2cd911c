"""The REST door: parses, calls one use case, composes the answer (design 5)."""
