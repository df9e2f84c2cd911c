"""The boundary engine's use cases: ask for a compaction, make it, install it by compare-and-set, and read what came of it."""
