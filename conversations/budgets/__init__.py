"""Limits on money, tokens, turns and requests: admission, holds, the ledger, prices and notices."""
