"""Alerts of budgets: mails and signed webhooks when a percent is passed, and their outbox."""
