"""Reads of the REST door: one typed or ready result per endpoint, the tenant always first."""
