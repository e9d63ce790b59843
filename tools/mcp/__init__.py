"""Tools of MCP servers: connected to, listed, called and never believed.

A server is another party. What it lists is offered to the model only in the words an administrator
approved, what it gives is bounded before it is read, and what it asks for itself is refused.
"""
