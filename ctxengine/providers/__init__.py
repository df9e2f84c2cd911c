"""Model providers: what is known about their models, how their errors read, and the adapters that call them."""
