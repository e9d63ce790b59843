"""People who use the site: their preferences, the log-in throttle, who read whose content."""
