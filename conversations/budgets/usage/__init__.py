"""The cost of calls, of one person and of the site; days are UTC days.

A call belongs to the day it was sent on. An erasure keeps the same sums by day and model for the
erased conversation, so that a page's total agrees with the ledger.
"""
