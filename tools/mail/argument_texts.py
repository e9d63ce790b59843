"""Descriptions of the arguments that several mail tools take; the model reads them."""

from __future__ import annotations

ACCOUNT = "name of the mail account; empty when the user has only one"
FOLDER = "folder as list_mail_folders names it; empty for the account's usual one"
UID = "number of the mail in its folder, as search_mail gives it"
TO = "bare addresses of the recipients"
CC = "bare addresses of those who get a copy"
REPLY_TO = "Message-ID of the mail this answers, as read_mail shows it"
