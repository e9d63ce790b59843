"""Attachments of messages, and the files of a person's workspace."""
