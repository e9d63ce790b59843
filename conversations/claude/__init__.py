"""The one client of the Messages API; nothing else imports the SDK."""
