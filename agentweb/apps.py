"""The site's start: registers the checks, and starts logging, metrics and tracing if configured."""

from __future__ import annotations

import contextlib
from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ImproperlyConfigured


class AgentwebConfig(AppConfig):
    name = "agentweb"

    def ready(self) -> None:
        from agentweb.observability import tracing
        from agentweb.serving import checks, host  # noqa: F401  (checks register themselves)
        from conversations.conf import conf
        from conversations.log.reduction_lines import log_reduction
        from conversations.signals import transformation_recorded
        from conversations.telemetry import metrics
        from conversations.turns.metrics import count_transformation

        host.leave_no_core()
        # Without the extra `tracing` a system check reports it.
        with contextlib.suppress(ImportError):
            if settings.METRICS:
                metrics.switch_on()
            if tracing.is_wanted():
                tracing.switch_on()
        tracing.follow_tasks()
        transformation_recorded.connect(count_transformation, dispatch_uid="agentweb-metrics")
        transformation_recorded.connect(log_reduction, dispatch_uid="agentweb-lines")
        for name in conf.hooks:
            _import_hooks(name)
        user_login_failed.connect(_log_in_failed, dispatch_uid="agentweb-metrics")


def _import_hooks(name: str) -> None:
    """Import a module of the site's own code; raises ImproperlyConfigured when that fails."""
    try:
        import_module(name)
    except Exception as error:
        text = f"AGENTWEB_HOOKS names {name}, which cannot be imported: {error!r}"
        raise ImproperlyConfigured(text) from error


def _log_in_failed(**_: object) -> None:
    from conversations.telemetry.metrics import LOG_INS_FAILED

    LOG_INS_FAILED.add()
