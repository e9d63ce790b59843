"""What a browser is sent as it happens: sockets, the hub, frames, the relay between processes."""
