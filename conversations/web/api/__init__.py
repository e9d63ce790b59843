"""The API: figures to read for programs, with a token."""
