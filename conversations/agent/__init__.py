"""The agent loop, pure: it prepares a request, asks the model and runs tools, all through ports."""
