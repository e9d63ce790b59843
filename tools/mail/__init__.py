"""Mail by IMAP and SMTP: connections, messages in and out; the tools are beside this folder."""

from __future__ import annotations
