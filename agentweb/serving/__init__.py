"""Server and worker processes: start-up, checks, heartbeat, shutdown."""
