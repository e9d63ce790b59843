"""The HTTP and WebSocket server in front of the application, with limits before any view runs."""
