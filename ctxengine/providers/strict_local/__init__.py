"""A stand-in for model providers that refuses what they refuse, bills caches as they do, and says that it is scripted."""
