"""Mail by IMAP and SMTP: connections, messages in and out; the tools are in `tools/`."""

from __future__ import annotations
