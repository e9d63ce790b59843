"""The numbers that decide when the context is reduced, and how full it is."""
