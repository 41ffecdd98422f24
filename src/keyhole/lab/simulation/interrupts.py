"""Ctrl-C while work is being wound up: several presses in a row are one."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Any, Self

# Seconds in which further presses are taken for the first one. Winding up takes less as a rule.
GRACE = 1.0


class Interrupts:
    """A handler of SIGINT that raises KeyboardInterrupt once, and not again within `GRACE`.

    As a context it takes the place of Python's own handler. Once it was pressed it stays there
    when the context ends: a second press a moment later would otherwise hit whoever is about to
    save what the first one left. It gives way to the former handler with the next press.

    Any other handler, and any thread but the main one, is left alone.
    """

    def __init__(self) -> None:
        self._former: Any = None
        self._pressed: float | None = None
        self._deaf = self._ended = False

    def __enter__(self) -> Self:
        current = signal.getsignal(signal.SIGINT)
        if isinstance(current, Interrupts) and current._ended:  # that of an earlier simulation
            current = current._former
        ours = current is signal.default_int_handler
        if ours and threading.current_thread() is threading.main_thread():
            self._former = current
            signal.signal(signal.SIGINT, self)
        return self

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless this is one of several presses in a row."""
        now = time.monotonic()
        if self._deaf or (self._pressed is not None and now <= self._pressed + GRACE):
            return
        self._pressed = now
        if self._ended:
            signal.signal(signal.SIGINT, self._former)
        self._former(number, frame)

    def ignore(self) -> None:
        """Raise nothing from now on: what is finished is being put together."""
        self._deaf = True

    def __exit__(self, *_: object) -> None:
        self._deaf, self._ended = False, True
        if self._former is not None and self._pressed is None:
            signal.signal(signal.SIGINT, self._former)
