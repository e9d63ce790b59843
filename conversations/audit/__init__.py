"""Verification: proves from the rows alone that the record is what was sent and paid."""
