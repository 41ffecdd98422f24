"""A handler for Ctrl-C during shutdown: several presses in a row count as one."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any, Self

# Seconds in which further presses count as the first one. Shutdown usually takes less.
GRACE = 1.0


class Interrupts:
    """A handler of SIGINT that raises KeyboardInterrupt once, and not again within `GRACE`.

    As a context manager it replaces Python's own handler. After a press it stays installed when the
    context ends: otherwise a second press a moment later would interrupt the caller, which is about
    to save the finished work. The next press restores the former handler.

    Any other handler, and any thread but the main one, is left unchanged.
    """

    def __init__(self) -> None:
        self._former: Any = None
        self._pressed: float | None = None
        self._deaf = self._ended = False

    def __enter__(self) -> Self:
        current = signal.getsignal(signal.SIGINT)
        if isinstance(current, Interrupts) and current._ended:  # left by an earlier simulation
            current = current._former
        ours = current is signal.default_int_handler
        if ours and threading.current_thread() is threading.main_thread():
            self._former = current
            signal.signal(signal.SIGINT, self)
        return self

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless this is one of several presses in a row.

        Parameters
        ----------
        number : int
            The number of the signal.
        frame : frame or None
            The interrupted stack frame.
        """
        now = time.monotonic()
        if self._deaf or (self._pressed is not None and now <= self._pressed + GRACE):
            return
        self._pressed = now
        if self._ended:
            signal.signal(signal.SIGINT, self._former)
        self._former(number, frame)

    def ignore(self) -> None:
        """Ignore further presses while the finished work is assembled."""
        self._deaf = True

    def __exit__(self, *_: object) -> None:
        self._deaf, self._ended = False, True
        if self._former is not None and self._pressed is None:
            signal.signal(signal.SIGINT, self._former)
