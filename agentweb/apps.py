"""The site's start: checks are registered, and what tells of the site is switched on if wanted."""

from __future__ import annotations

import contextlib

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth.signals import user_login_failed


class AgentwebConfig(AppConfig):
    name = "agentweb"

    def ready(self) -> None:
        from agentweb.observability import tracing
        from agentweb.serving import checks, host  # noqa: F401  (checks register themselves)
        from conversations.signals import transformation_recorded
        from conversations.telemetry import metrics
        from conversations.turns.metrics import count_transformation

        host.leave_no_core()
        # Without the extra a check says so.
        with contextlib.suppress(ImportError):
            if settings.METRICS:
                metrics.switch_on()
            if tracing.is_wanted():
                tracing.switch_on()
        tracing.follow_tasks()
        transformation_recorded.connect(count_transformation, dispatch_uid="agentweb-metrics")
        user_login_failed.connect(_log_in_failed, dispatch_uid="agentweb-metrics")


def _log_in_failed(**_: object) -> None:
    from conversations.telemetry.metrics import LOG_INS_FAILED

    LOG_INS_FAILED.add()
