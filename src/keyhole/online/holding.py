"""Ctrl-C that waits until a change is complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C within a block, and deliver it at its end.

    For calls that change several things by Python code. Other threads than the main one are never
    interrupted, and a handler that is not Python's, or none, stays as it is.
    """
    former = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(former):
        yield
        return
    pressed: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
        if pressed:
            former(*pressed[0])
