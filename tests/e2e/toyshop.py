"""The product with the tests' small tools: `python -m tests.e2e.toyshop serve --port N`."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line

from tests.support.toy_tools import TOYS
from tools.framework.registry import TOOLS

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")
    TOOLS.update(TOYS)
    execute_from_command_line(["manage.py", *sys.argv[1:]])
