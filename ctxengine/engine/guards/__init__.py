"""Drift guards: checks on what a model answered, each a pure function from evidence to a verdict (capacity spec 6 and 7)."""
