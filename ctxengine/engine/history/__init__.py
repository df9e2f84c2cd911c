"""How history is projected into a request: one module per engine behind one protocol."""
