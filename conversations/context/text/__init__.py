"""Shorten text so that it stays readable: by characters, by lines, as JSON."""
