"""Django's SQLite backend with a queue for the writers of a process; see `base`."""
