"""Operation of the database: backup and restore, the application's role, a damaged file."""
