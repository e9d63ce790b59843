"""Validation of requests, in the API's order and with its texts."""
