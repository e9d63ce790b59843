"""Tools of MCP servers: connected to, listed, called and never trusted.

A server is another party. What it lists is given to the model only as an administrator approved it,
what it returns is bounded before it is read, and what it asks for itself is refused.
"""
