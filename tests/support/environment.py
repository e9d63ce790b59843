"""The environment of a test run: temporary data, no key, only the run's own database and broker.

Set before Django reads it, so that a developer's environment never changes a result and no test
can reach a real account. Processes that tests start inherit it. AGENTWEB_TEST_DATABASE chooses
Django's database: `sqlite` (a file, the default) or `postgres` (the run's own server).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.support import servers

DATABASE = os.environ.get("AGENTWEB_TEST_DATABASE", "sqlite")
KEPT = ("AGENTWEB_TEST_", "AGENTWEB_CHROMIUM", "AGENTWEB_PG_BIN")
FOREIGN = ("AGENTWEB_", "ANTHROPIC_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY")


def prepare() -> Path:
    """Replace the environment's settings of agentweb; return the temporary folder."""
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        if not name.startswith(KEPT):
            del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="agentweb-tests-"))
    servers.at_end(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["AGENTWEB_DATA_DIR"] = str(folder)
    # It would add a call after each first answer; the tests of titles turn it on.
    os.environ["AGENTWEB_TITLE_MODEL"] = "off"
    # Tests empty the database; those of anchors use their own files.
    os.environ["AGENTWEB_ANCHOR_FILE"] = "off"
    # Tests of what is read read at once; those of reasons turn it on.
    os.environ["AGENTWEB_READING_REASONS"] = "false"
    os.environ["SECRET_KEY"] = "only for tests, " * 4
    if DATABASE == "postgres":
        os.environ["DATABASE_URL"] = servers.shared_postgres().url
    elif DATABASE != "sqlite":
        raise ValueError(f"AGENTWEB_TEST_DATABASE: {DATABASE!r} is neither sqlite nor postgres")
    return folder


FOLDER = prepare()
