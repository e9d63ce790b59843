"""The only client of the Messages API; no other package imports the SDK."""
