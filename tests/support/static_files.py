"""The static files middleware for tests: files are looked up once in a run.

Django's test client builds all middleware anew for each client. That of the static files looks up
every file on the disk, which takes longer than most pages that are then requested; and as it is
made for asynchronous servers only, every request of that client passes to an event loop of its own
thread and back, six times. Here a request for anything but a static file is passed on directly. A
server, which is asynchronous, uses the original middleware.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from servestatic.middleware import ServeStaticMiddleware


@sync_and_async_middleware
def statics(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    if iscoroutinefunction(get_response):
        return ServeStaticMiddleware(get_response)
    files = ServeStaticMiddleware(sync_to_async(get_response))

    def served(request: HttpRequest) -> HttpResponseBase:
        if files.autorefresh or request.path_info in files.files:
            return async_to_sync(files)(request)
        response: HttpResponseBase = get_response(request)
        return response

    return served


def look_once() -> None:
    """Share the first middleware's files with later ones of the same settings."""
    look = ServeStaticMiddleware.add_files_from_finders
    found: dict[tuple[object, ...], tuple[dict[str, Any], list[Any]]] = {}

    def recall(self: ServeStaticMiddleware) -> None:
        asked = (self.static_prefix, self.max_age, self.autorefresh)
        if asked not in found:
            look(self)
            found[asked] = dict(self.files), list(self.directories)
        files, directories = found[asked]
        self.files, self.directories = dict(files), list(directories)

    ServeStaticMiddleware.add_files_from_finders = recall
