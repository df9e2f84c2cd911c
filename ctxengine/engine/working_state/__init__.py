"""What a session must not forget: typed state computed from the log (frozen-prefix spec, Working state)."""
