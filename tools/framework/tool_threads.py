"""Threads in which tool calls run, each with an event loop of its own.

A call has such a thread to itself, so whatever a tool does between two awaits, no page, socket or
other answer waits for it. A call that was told to end and does not is interrupted: an exception is
raised in its thread between two instructions of Python. Only one call of C code can resist that;
such work belongs into a process (`tools/isolation`). A call that computes for more than
`MOST_PROCESSOR` seconds here, where the interpreter lock is shared with all pages, is ended in the
same way. Threads are kept for the next calls.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, TypeVar, cast

from tools.framework.errors import IsolationError
from tools.framework.thread_times import read_thread_time

T = TypeVar("T")
logger = logging.getLogger("tools")
#: Idle threads that are kept.
MOST_IDLE = 8
#: Seconds that a cancelled call has to end before it is interrupted, and times this is repeated.
GRACE, MOST_INTERRUPTS = 0.5, 60
#: Seconds of processor time that a call may take in its thread, and between two looks at it.
MOST_PROCESSOR, LOOK = 5.0, 1.0


class Interrupted(BaseException):
    """Raised in a tool that does not end."""


class _ToolThread(threading.Thread):
    """One thread with its loop; runs one call at a time."""

    def __init__(self) -> None:
        super().__init__(name="tool", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._tell: Callable[[asyncio.Task[Any]], None]
        self.was_interrupted = False
        self.start()

    def run(self) -> None:
        try:
            with suppress(Interrupted):
                self._run()
        finally:
            self._loop.close()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        except Interrupted:
            # The call waits for something and refuses to be cancelled, or has just ended.
            self._close_tasks()
            if self._task is not None:
                self._tell(self._task)
        else:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())

    def _close_tasks(self) -> None:
        """End the coroutines that wait in this loop, and so their tasks."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            with suppress(Exception):  # whatever it does at its end, it has nobody to tell
                cast("Coroutine[Any, Any, Any]", task.get_coro()).close()
            task.cancel()
        self._loop.run_until_complete(_wait_for(tasks))

    def begin(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        context: Context,
        done: Callable[[asyncio.Task[T]], None],
    ) -> None:
        """Run a coroutine; `done` is called in this thread with its finished task."""

        self._tell, self._task = done, None

        def start() -> None:
            self._task = self._loop.create_task(work(), context=context)
            self._task.add_done_callback(done)

        self._loop.call_soon_threadsafe(start)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def interrupt(self) -> None:
        """Raise an exception in what the thread is doing."""
        self.was_interrupted = True
        if not self.is_alive():
            return
        exception = ctypes.py_object(Interrupted)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident or 0), exception)
        # It is raised between two instructions, of which a loop that waits has none: wake it.
        with suppress(RuntimeError):  # its loop is closed: it has ended
            self._loop.call_soon_threadsafe(lambda: None)

    def end_with_call(self) -> None:
        """End the thread as soon as its call has ended."""
        with suppress(RuntimeError):  # its loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._stop_when_done)

    def _stop_when_done(self) -> None:
        if self._task is None or self._task.done():
            self._loop.stop()
        else:
            self._task.add_done_callback(lambda _: self._loop.stop())

    def end(self) -> None:
        with suppress(RuntimeError):  # its loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)


async def _wait_for(tasks: set[asyncio.Task[Any]]) -> None:
    """Wait a little for the end of tasks whose coroutines are closed, which is an error of each."""
    done = (await asyncio.wait(tasks, timeout=GRACE))[0] if tasks else ()
    for task in done:
        if not task.cancelled():
            task.exception()


_idle: list[_ToolThread] = []


async def run_in_tool_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await a coroutine in a thread of its own; when cancelled, wait until it has ended there.

    Raises IsolationError when it takes too much processor time.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[asyncio.Task[T]] = loop.create_future()
    thread = _take_thread()

    def tell(task: asyncio.Task[T]) -> None:
        try:
            loop.call_soon_threadsafe(_set_result, ended, task)
        except RuntimeError:  # the loop that waited is closed
            return

    most = read_thread_time(thread) + MOST_PROCESSOR
    thread.begin(work, copy_context(), tell)
    try:
        while not (await asyncio.wait({ended}, timeout=LOOK))[0]:
            if read_thread_time(thread) > most:
                await _end_call(ended, thread)
                raise IsolationError(f"It computed for more than {MOST_PROCESSOR:g} seconds.")
    except asyncio.CancelledError:
        await _end_call(ended, thread)
        raise
    finally:
        if ended.done():
            _keep_thread(thread)
        else:
            thread.end_with_call()
    return ended.result().result()


async def _end_call(ended: asyncio.Future[Any], thread: _ToolThread) -> None:
    """Cancel a call and wait for its end; interrupt it as long as it goes on."""
    thread.cancel()
    for _ in range(MOST_INTERRUPTS):
        done, _pending = await asyncio.wait({ended}, timeout=GRACE)
        if done:
            _log_late_error(ended.result(), thread.was_interrupted)
            return
        if not thread.is_alive():
            return
        thread.interrupt()


def _log_late_error(task: asyncio.Task[Any], was_interrupted: bool) -> None:
    """Log with which error a call ended that was told to end; it has nobody else to tell."""
    error = task.exception() if task.done() and not task.cancelled() else None
    if error is not None and not was_interrupted:
        logger.warning("a call that was told to end failed", exc_info=error)


def _set_result(ended: asyncio.Future[T], task: T) -> None:
    if not ended.done():
        ended.set_result(task)


def _take_thread() -> _ToolThread:
    try:
        return _idle.pop()
    except IndexError:
        return _ToolThread()


def _keep_thread(thread: _ToolThread) -> None:
    if thread.was_interrupted or len(_idle) >= MOST_IDLE:
        # An interrupt may be on its way, and must not reach another call.
        thread.end()
    else:
        _idle.append(thread)
