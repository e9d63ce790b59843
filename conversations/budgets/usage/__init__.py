"""What calls have cost: of one person, and of the site; days are those of UTC.

A call belongs to the day it was sent on. Of erased conversations the erasure keeps the same sums by
day and model, so a page's total is what the ledger says.
"""
