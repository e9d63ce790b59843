"""agentweb's settings in the environment of a test run."""

from __future__ import annotations

import gc
import os

# isort: off
from tests.support import environment  # sets what the next line reads
from agentweb.settings import *  # noqa: F403
# isort: on

# All that is imported stays: to search it for garbage would take a sixth of a run's start.
gc.disable()

# Processes that tests start are the product with the product's settings.
os.environ["DJANGO_SETTINGS_MODULE"] = "agentweb.settings"

if environment.DATABASE == "sqlite":
    # A file, because other threads and processes cannot see a database in memory.
    DATABASES["default"]["TEST"] = {"NAME": environment.FOLDER / "test.sqlite3"}  # noqa: F405
else:
    # One transaction is open for as long as a test takes, on a busy machine too.
    DATABASES["default"]["OPTIONS"]["options"] += (  # noqa: F405
        " -c idle_in_transaction_session_timeout=180s"
    )

# The real one takes a third of a second for each password.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# The same for a server; the test client has it without an event loop for each request.
MIDDLEWARE = [
    "tests.support.static_files.statics" if name.startswith("servestatic.") else name
    for name in MIDDLEWARE  # noqa: F405
]
