"""Third-party clients of the Messages API, run unmodified against the emulator."""
