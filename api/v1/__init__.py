"""Version 1 of the REST door: one module per group of endpoints."""
