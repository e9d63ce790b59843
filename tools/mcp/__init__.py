"""Tools of MCP servers: connecting, listing and calling; servers are never trusted.

A server is a third party. Only tool definitions that an administrator approved are sent to the
model, results are bounded before they are read, and requests of the server are refused.
"""
