"""Django's SQLite with writers of one process in a queue; the backend is in `base`."""
