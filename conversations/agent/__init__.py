"""The agent loop without I/O: prepares a request, calls the model and runs tools through ports."""
