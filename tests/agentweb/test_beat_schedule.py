"""What beat sends when: tasks that exist, none kept too long, whatever the clock was."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path

from celery.utils.imports import symbol_by_name
from django.conf import settings


def test_every_scheduled_task_exists() -> None:
    from agentweb.celery import app

    app.loader.import_default_modules()
    wanted = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert wanted <= set(app.tasks)


def test_a_scheduled_task_that_no_worker_took_is_not_kept_for_the_next_one() -> None:
    """Else a worker that starts after a night would do thousands of them at once."""
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert 60 <= entry["options"]["expires"] <= max(60, entry["schedule"])


def test_beat_goes_on_when_a_clock_that_was_ahead_is_set_back(tmp_path: Path) -> None:
    """The times of a wrong clock are kept over a restart."""
    from agentweb.celery import app

    scheduler = symbol_by_name(app.conf.beat_scheduler)
    with contextlib.closing(scheduler(app=app, schedule_filename=str(tmp_path / "beat"))) as beat:
        assert set(beat.schedule) >= set(settings.CELERY_BEAT_SCHEDULE)
        for days in (1, 400):
            for entry in beat.schedule.values():
                entry.last_run_at = app.now() + timedelta(days=days)
            assert beat.tick() <= 15
            assert all(entry.last_run_at <= app.now() for entry in beat.schedule.values())
