"""The Django site: settings, addresses, the embedded Postgres and the process supervisor."""
