"""Use cases of the `working_set` engine: planning at run start, replanning inside a run, the reset with handoff."""
