"""What a provider can serve from its prompt cache: markers asked for, reads predicted, shortfalls explained."""
