"""What a tool is, how it is described to the model, and how it is run."""
