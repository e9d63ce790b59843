"""The numbers that decide when the context is reduced, and the gauge they are compared with."""
