"""Use cases: one module, one verb. Doors call these and nothing else (design 3)."""
