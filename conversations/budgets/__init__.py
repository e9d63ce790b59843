"""Limits on money, tokens and turns: admission, holds, the ledger, prices and notices."""
