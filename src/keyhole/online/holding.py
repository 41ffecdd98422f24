"""Ctrl-C that waits until a change is complete."""

from __future__ import annotations

# `signal` itself turns numbers into enums and back, which takes 9 of 11 microseconds here; these
# are the functions that it calls.
import _signal  # type: ignore[import-not-found] # CPython's own, without stubs
import threading
from signal import SIGINT
from types import FrameType, TracebackType
from typing import Any

_INTERRUPT = int(SIGINT)


class held_interrupts:  # noqa: N801 - used as a function is
    """Hold back Ctrl-C within a block, and deliver it at its end.

    For calls that change several things by Python code. Other threads than the main one are never
    interrupted, and a handler that is not Python's, or none, stays as it is.
    """

    __slots__ = ("_former", "_pressed")

    def __enter__(self) -> None:
        self._pressed: list[tuple[int, FrameType | None]] = []
        self._former: Any = None
        if threading.get_ident() == threading.main_thread().ident:
            former = _signal.getsignal(_INTERRUPT)
            if callable(former):
                self._former = former
                _signal.signal(_INTERRUPT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pressed.append((number, frame))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._former is None:
            return
        _signal.signal(_INTERRUPT, self._former)
        if self._pressed:
            self._former(*self._pressed[0])
