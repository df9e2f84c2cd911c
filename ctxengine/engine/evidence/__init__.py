"""Evidence: results stored whole, and the shorter forms a request can show instead."""
