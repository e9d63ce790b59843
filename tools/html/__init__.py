"""HTML as text that a model can read."""
