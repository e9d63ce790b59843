"""Saved prompts: texts with variables that people keep, and those of the site."""
