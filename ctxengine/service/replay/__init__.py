"""The replay lab: a transcript run again under any engine, model and budget, without calling a provider (design 8)."""
