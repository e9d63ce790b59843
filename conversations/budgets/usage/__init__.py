"""What calls have cost, of one person and of the site; days are those of UTC.

A call belongs to the day it was sent on. An erasure keeps the same sums by day and model of the
erased conversation, so that a page's total agrees with the ledger.
"""
