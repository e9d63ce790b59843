"""People who use the site: preferences, sessions, the log-in throttle, the reading log."""
