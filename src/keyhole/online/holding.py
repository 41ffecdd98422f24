"""Signals that wait until a change is complete."""

from __future__ import annotations

# `signal` itself turns numbers into enums and back, which takes 9 of 11 microseconds here; these
# are the functions that it calls.
import _signal  # type: ignore[import-not-found] # CPython's own, without stubs
import threading
from signal import valid_signals
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = tuple(sorted(map(int, valid_signals())))
# The handlers of all signals when they were last looked at, and those that Python calls: they are
# hardly ever others, and to sort them out again takes as long as to look at them.
_last: tuple[tuple[Any, ...], dict[int, Any]] = ((), {})


def _handled() -> dict[int, Any]:
    """Return the handlers that Python calls, by the number of their signal."""
    global _last
    handlers = tuple(map(_signal.getsignal, _SIGNALS))
    before, found = _last
    if handlers != before:
        pairs = zip(_SIGNALS, handlers, strict=True)
        found = {number: one for number, one in pairs if callable(one)}
        _last = handlers, found
    return found


class held_interrupts:  # noqa: N801 - used as a function is
    """Hold back signals that Python code handles within a block, and deliver them at its end.

    For calls that change several things by Python code: Ctrl-C, or a handler of SIGALRM or
    SIGTERM that raises, would leave them halfway. Other threads than the main one are never
    interrupted, and a handler that is not Python's, or none, stays as it is.
    """

    __slots__ = ("_former", "_is_over", "_pressed")

    def __enter__(self) -> None:
        self._pressed: dict[int, FrameType | None] = {}
        self._former: dict[int, Any] = {}
        self._is_over = False
        if threading.get_ident() != threading.main_thread().ident:
            return
        self._former = _handled()
        try:
            for number in self._former:
                _signal.signal(number, self._note)
        except BaseException:  # of a handler that has not been replaced yet
            self._release()
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._is_over:  # a handler raised before this one was put back
            self._former[number](number, frame)
        else:
            self._pressed.setdefault(number, frame)

    def _release(self) -> None:
        self._is_over = True
        for number, former in self._former.items():
            _signal.signal(number, former)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._former:
            return
        self._release()
        self._deliver()

    def _deliver(self) -> None:
        """Call the handlers of what came; one that raises keeps no other from being called."""
        if not self._pressed:
            return
        number, frame = next(iter(self._pressed.items()))
        del self._pressed[number]
        try:
            self._former[number](number, frame)
        finally:
            self._deliver()
