"""Answering control tools: one module per tool, one registry."""
