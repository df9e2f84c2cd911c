"""An embedded Postgres: its programs found, run under an account that it accepts, shared by processes."""
