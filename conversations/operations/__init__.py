"""The database as an operator handles it: backup and restore, its role, a damaged file."""
