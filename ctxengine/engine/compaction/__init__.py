"""How history shrinks: by elision and summary, without laundering anything (frozen-prefix spec, Compaction)."""
