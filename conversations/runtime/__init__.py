"""Turns as they run in a process: supervisor, adapters of the ports, side calls, sweeps."""
