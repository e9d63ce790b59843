"""HTML as text: one scanner, one form for the model, one for the context engine."""
