"""Adapters to model providers: our own side calls, counts and native features (design 7.14)."""
