"""Clients of a service: what they ask, and what they were answered.

An ask and its answer are plain JSON, so that they can go through a pipe. `Load` makes asks from a
seed, `perform` puts them to a service, and `drive` waits for the disk before it tells the answer.
"""

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from keyhole.errors import InvalidValue, KeyholeError, KeyholeWarning
from keyhole.service import DecideRequest, Service

Ask = dict[str, Any]
Answer = dict[str, Any]

LOOPS: dict[str, dict[str, Any]] = {
    "once": {"arms": ["A", "B", "C"], "dim": 3},
    "ends": {"arms": ["A", "B"], "dim": 2, "reward": {"default": 0.0, "wait": 0.05}},
    "fields": {
        "arms": ["A", "B", "C"],
        "features": {"numbers": ["x", "z"], "categories": {"c": ["u", "v"]}},
        "reward": {"default": 0.0, "wait": 0.1, "aggregate": "max"},
    },
}


def perform(service: Service, ask: Ask) -> tuple[Answer, int]:
    """Return the answer to an ask, and the unit to wait for before it may be told.

    Parameters
    ----------
    service : Service
        The service.
    ask : dict
        What is asked.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeyholeWarning)  # of a reward that is far from others
        return _performed(service, ask)


def _performed(service: Service, ask: Ask) -> tuple[Answer, int]:
    do, name = ask["do"], ask["loop"]
    if do == "create":
        loop = service.create(name, ask["settings"])
        return {"version": loop.version}, loop.unit
    if do == "decide":
        decided = service.decide(name, msgspec.convert(ask["request"], DecideRequest))
        answer = msgspec.to_builtins(decided.answer)
        return {**answer, "is_replay": decided.is_replay}, decided.unit
    loop = service.loop(name)
    answer = {}
    if do == "reward":
        answer = msgspec.to_builtins(loop.reward(ask["event"], ask["value"], ask["id"]))
    elif do == "arms":
        loop.add_arms(ask["arms"])
    else:
        getattr(loop, do)(ask["event"])
    return {"version": loop.version, **answer}, loop.unit


def answered(service: Service, ask: Ask, end: Callable[[], None] | None = None) -> Answer:
    """Return the answer to an ask after it is on the disk, or the refusal.

    Parameters
    ----------
    service : Service
        The service.
    ask : dict
        The ask.
    end : callable, optional
        Ends the turn of an event loop, in which the ask is committed.
    """
    try:
        answer, unit = perform(service, ask)
        if end is not None:
            end()
        service.wait(unit)
    except KeyholeError as reason:
        return refusal(reason)
    return answer


def refusal(reason: KeyholeError) -> Answer:
    """Return the answer of a request that was refused.

    One that is wrong in itself stays so; whether one that the disk refused is in the log is unknown
    until it is asked again.
    """
    return {"refused": type(reason).__name__, "is_final": isinstance(reason, InvalidValue)}


class Load:
    """What clients ask, one after the other.

    Parameters
    ----------
    seed : int
        The same seed gives the same asks.
    name : str
        What the ids of its events begin with.
    loops : dict, optional
        The settings of its loops by name.
    forgets : bool, default True
        Whether events are forgotten.
    """

    def __init__(
        self,
        seed: int,
        name: str,
        loops: dict[str, dict[str, Any]] | None = None,
        *,
        forgets: bool = True,
    ) -> None:
        self.random, self.name = random.Random(seed), name
        self.loops = LOOPS if loops is None else loops
        self.forgets = forgets
        self.count = 0
        self.recent: list[Ask] = []  # decisions that rewards may come for

    def begin(self) -> list[Ask]:
        """Return the asks that make the loops."""
        return [
            {"do": "create", "loop": name, "settings": settings}
            for name, settings in self.loops.items()
        ]

    def next(self) -> Ask:
        """Return the next ask."""
        luck = self.random.random()
        if luck < 0.5 or not self.recent:
            return self._decide()
        old = self.random.choice(self.recent[-40:])
        loop, event = old["loop"], old["request"]["event_id"]
        if luck < 0.85:
            return self._reward(loop, event)
        if luck < 0.92:
            return old
        if luck < 0.96:
            return {"do": "activate", "loop": loop, "event": event}
        if luck < 0.98 and self.forgets and loop == "once":
            return {"do": "forget", "loop": loop, "event": event}
        return {"do": "arms", "loop": loop, "arms": [f"{self.name}{self.count}"]}

    def _decide(self) -> Ask:
        self.count += 1
        loop = self.random.choice(list(self.loops))
        settings = self.loops[loop]
        context: Any = {"x": self._number(), "c": self.random.choice("uv")}
        if "dim" in settings:
            context = [self._number() for _ in range(settings["dim"])]
        request = {"context": context, "event_id": f"{self.name}-{self.count}"}
        if self.random.random() < 0.2:
            request["defer"] = True
        if self.random.random() < 0.2:
            request["actions"] = [{"id": "A"}, {"id": "B"}]
        ask = {"do": "decide", "loop": loop, "request": request}
        self.recent.append(ask)
        return ask

    def _reward(self, loop: str, event: str) -> Ask:
        return {
            "do": "reward",
            "loop": loop,
            "event": event,
            "value": self._number(),
            "id": self.random.choice("abc"),
        }

    def _number(self) -> float:
        return round(self.random.gauss(0.0, 1.0), 6)


class Turn:
    """An event loop, whose turn ends when it is told to."""

    def __init__(self) -> None:
        self.planned: list[Callable[[], None]] = []

    def plan(self, one: Callable[[], None]) -> None:
        self.planned.append(one)

    def end(self) -> None:
        planned, self.planned = self.planned, []
        for one in planned:
            one()


def drive(
    service: Service, asks: Iterator[Ask], tell: Callable[[Ask, Answer | None], None], luck: int
) -> None:
    """Put asks to a service, some at a time, and tell each before it is asked and once answered.

    Most are committed at the end of a turn, as by a server, and the others by the writer's thread.

    Parameters
    ----------
    service : Service
        The service.
    asks : iterator of dict
        The asks.
    tell : callable
        Called with an ask and None, and later with the ask and its answer.
    luck : int
        A seed, for how many are asked at a time.
    """
    rng, turn = random.Random(luck), Turn()
    service.gather(turn.plan)
    more = True
    while more:
        waiting: list[tuple[Ask, Answer, int]] = []
        more = False
        for ask in _some(asks, rng.randint(1, 8)):
            more = True
            tell(ask, None)
            try:
                waiting.append((ask, *perform(service, ask)))
            except KeyholeError as reason:
                waiting.append((ask, refusal(reason), 0))
        if rng.random() < 0.7:
            turn.end()
        for ask, answer, unit in waiting:
            try:
                service.wait(unit)
            except KeyholeError as reason:
                answer = refusal(reason)
            tell(ask, answer)
        if rng.random() < 0.3:
            service.tick()


def _some(asks: Iterator[Ask], n: int) -> Iterator[Ask]:
    for _, ask in zip(range(n), asks, strict=False):
        yield ask
