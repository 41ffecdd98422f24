"""The best of several answers, and the table of two versions."""

from __future__ import annotations

from typing import Any

Answer = dict[str, Any]
Measures = dict[str, dict[str, Answer]]  # by name, then by side
SIDES = ("before", "now")
NAN = float("nan")
# What an answer may hold: its unit, and whether more is better.
FIELDS = {
    "rate": ("/s", True),
    "seconds": ("s", False),
    "call": ("s in the call", False),
    "memory": ("MB", False),
    "peak": ("MB at most", False),
}


def better(one: Answer, other: Answer) -> Answer:
    """Return the better of two answers in each field; a failed one only if both failed."""
    if "failed" in one or "failed" in other:
        return one if "failed" in other else other
    return {
        name: (max if FIELDS[name][1] else min)(value, other[name]) for name, value in one.items()
    }


def rows(measures: Measures) -> list[list[str]]:
    """Return rows of name, before, now, unit and the improvement as a ratio."""
    table = []
    for name, answers in measures.items():
        for field, (unit, more) in FIELDS.items():
            if any(field in answer for answer in answers.values()):
                before, now = (answers[side].get(field, NAN) for side in SIDES)
                ratio = now / before if more else before / now
                table.append([name, _number(before), _number(now), unit, f"{ratio:.2f}"])
    return table


def shares(measures: Measures) -> list[list[str]]:
    """Return rows of name, before and now: the rate with the probability read over that without."""
    table = []
    for name, answers in measures.items():
        plain = measures.get(name.replace("online-read", "online"))
        if name.startswith("online-read") and plain is not None:
            pairs = [(answers[side], plain[side]) for side in SIDES]
            both = [read.get("rate", NAN) / without.get("rate", NAN) for read, without in pairs]
            table.append([name, *(f"{share:.1%}" for share in both)])
    return table


def failures(measures: Measures) -> list[str]:
    """Return the failed measurements with their reasons."""
    return [
        f"{name}, {side}: {answer['failed']}"
        for name, answers in measures.items()
        for side, answer in answers.items()
        if "failed" in answer
    ]


def show(measures: Measures) -> None:
    """Print all of it."""
    print(f"{'':30} {'before':>12} {'now':>12} {'':14} {'better by':>9}")
    for name, before, now, unit, ratio in rows(measures):
        print(f"{name:30} {before:>12} {now:>12} {unit:14} {ratio:>9}")
    for name, before, now in shares(measures):
        print(f"{name:30} {before:>12} {now:>12} of online")
    for failure in failures(measures):
        print(f"not measured: {failure}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:,.2f}"
