"""Middleware, templates and their context, error pages, the admin site."""
