"""Live updates of open pages: sockets, the hub, frames, the relay between processes."""
