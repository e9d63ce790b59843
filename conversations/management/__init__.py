"""Commands about conversations, budgets, prices and the record."""
