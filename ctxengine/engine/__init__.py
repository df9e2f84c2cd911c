"""The engine: pure values in, values out. No Django, I/O, clock, randomness or globals (design 3)."""
