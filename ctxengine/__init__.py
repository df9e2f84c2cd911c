"""A context engine: what a model sees at each step of an agent, and why."""
