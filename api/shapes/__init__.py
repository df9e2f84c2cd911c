"""Shapes of request bodies: one table per endpoint that both reads the body and documents it."""
