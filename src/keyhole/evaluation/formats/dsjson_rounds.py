"""Rounds of dsjson as arrays, checked: every error names its line and its field."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np

from keyhole.core import Floats, Ints
from keyhole.errors import FileError, shown
from keyhole.evaluation.formats.dsjson_lines import Line
from keyhole.evaluation.formats.sources import Block

# Rows of probabilities may have been rounded to six digits.
ROUNDING = 1e-3


class Rounds(NamedTuple):
    """Rounds of a block. An entry is an action of a round; its round is `row`."""

    chosen: Ints  # (n,), the number of the action, from 1
    probability: Floats  # (n,)
    reward: Floats  # (n,), NaN if there is none
    row: Ints  # (entries,), ascending
    action: Ints  # (entries,), from 1
    p: Floats | None  # (entries,)
    kept: Floats  # (n,), the share of events that were kept
    tags: list[Sequence[str | None]] | None  # names of the actions of each round


def rounds_of(block: Block, places: list[int], lines: list[Line]) -> Rounds:
    """Return the rounds of lines that are decisions.

    Parameters
    ----------
    block : Block
        The block of the lines.
    places : list of int
        Their places in the block.
    lines : list of Line
        The lines, one or more.

    Raises
    ------
    FileError
        If a field is missing or has a wrong value.
    """

    def fail(i: int, what: str) -> NoReturn:
        raise FileError(f"{block.place(places[int(i)])}: {what}")

    actions = [_actions(line) for line in lines]
    for i, one in enumerate(actions):
        if one is None:
            fail(i, "a must be there, the numbers of the actions")
    listed: list[list[int]] = [one for one in actions if one is not None]
    n = len(lines)
    sizes = np.fromiter(map(len, listed), np.int64, n)
    row = np.repeat(np.arange(n), sizes)
    action = np.fromiter(chain.from_iterable(listed), np.int64, len(row))
    _check_once(row, action, fail)
    chosen = np.fromiter(map(_chosen, lines), np.int64, n)
    if (chosen < 0).any():
        i = int((chosen < 0).argmax())
        fail(
            i,
            f"_labelIndex must be _label_Action - 1 = {(lines[i].action or 0) - 1}, got "
            f"{lines[i].index}",
        )
    is_own = action == chosen[row]
    found = np.bincount(row[is_own], minlength=n)
    if (found == 0).any():
        i = int((found == 0).argmax())
        fail(i, f"_label_Action must be in a = {shown(listed[i])}, got {chosen[i]}")
    p = _probabilities(lines, sizes, row, fail)
    own = _numbers([line.probability for line in lines]) if p is None else p[is_own]
    field = "_label_probability" if p is None else "p of the chosen action"
    wrong = ~(own > 0.0) | ~(own <= 1.0)
    if wrong.any():
        i = int(wrong.argmax())
        fail(i, f"{field} must be above 0 and at most 1, got {own[i]:g}")
    return Rounds(
        chosen=chosen,
        probability=own,
        reward=_rewards(lines, fail),
        row=row,
        action=action,
        p=p,
        kept=_kept(lines, own, fail),
        tags=_tags(lines, action, row, fail),
    )


def _actions(line: Line) -> list[int] | None:
    """Return the numbers of the actions: as listed, or all that have features."""
    if line.a:
        return line.a
    named = getattr(line.c, "actions", None)
    return list(range(1, len(named) + 1)) if named else None


def _chosen(line: Line) -> int:
    """Return the number of the chosen action, or -1 if two fields contradict each other."""
    if line.action is None:
        if line.index is not None:
            return line.index + 1
        return line.a[0] if line.a else -1
    return -1 if line.index is not None and line.index + 1 != line.action else line.action


def _numbers(values: list[float | None]) -> Floats:
    return np.array([np.nan if one is None else one for one in values], np.float64)


def _check_once(row: Ints, action: Ints, fail: Any) -> None:
    """Raise if an action is listed twice."""
    key = row * (int(action.max()) + 1) + action
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    if same.any():
        at = order[1:][same].min()
        fail(row[at], f"a must have every action once, got {action[at]} twice")


def _probabilities(lines: list[Line], sizes: Ints, row: Ints, fail: Any) -> Floats | None:
    """Return the probability of every action, or None if no line has them."""
    has = np.fromiter((line.p is not None for line in lines), bool, len(lines))
    if not has.any():
        return None
    if not has.all():
        fail(has.argmin(), "p must be there, as it is in other lines")
    given = [line.p for line in lines if line.p is not None]
    lengths = np.fromiter(map(len, given), np.int64, len(given))
    differ = lengths != sizes
    if differ.any():
        i = int(differ.argmax())
        fail(i, f"p must have a probability for each of the {sizes[i]} actions, got {lengths[i]}")
    p = np.fromiter(chain.from_iterable(given), np.float64, len(row))
    wrong = ~(p >= 0.0) | ~(p <= 1.0)
    if wrong.any():
        at = int(wrong.argmax())
        place = at - int(sizes[: row[at]].sum())
        fail(row[at], f"p[{place}] must be from 0 to 1, got {p[at]:g}")
    total = np.bincount(row, p, len(lines))
    off = np.abs(total - 1.0)
    if (off > ROUNDING).any():
        i = int((off > ROUNDING).argmax())
        fail(i, f"p must add up to 1, got {total[i]:g}")
    # Only rows with rounded numbers are changed: others stay exactly as they were logged.
    return np.where(off[row] > 1e-6, p / total[row], p)


def _rewards(lines: list[Line], fail: Any) -> Floats:
    cost = _numbers([line.cost for line in lines])
    for i in np.flatnonzero(np.isnan(cost)).tolist():
        if lines[i].action is not None or lines[i].probability is not None:
            fail(i, "_label_cost must be there, the negative reward")
    original = _numbers([line.original for line in lines])
    differ = np.abs(original - cost) > 1e-6 * np.maximum(np.abs(cost), 1.0)
    if differ.any():
        i = int(differ.argmax())
        fail(
            i,
            f"_label_cost {cost[i]:g} must equal _original_label_cost {original[i]:g}: in the "
            "apprentice mode of Personalizer the first action is shown whatever is chosen, so "
            "that these probabilities are not those of what was shown",
        )
    return 0.0 - cost


def _kept(lines: list[Line], own: Floats, fail: Any) -> Floats:
    """Return the share of events that were kept: 1 - pdrop, which may be in the probability too."""
    kept = 1.0 - np.fromiter((line.pdrop for line in lines), np.float64, len(lines))
    wrong = ~(kept > 0.0) | ~(kept <= 1.0)
    if wrong.any():
        i = int(wrong.argmax())
        fail(i, f"pdrop must be at least 0 and below 1, got {1.0 - kept[i]:g}")
    label = _numbers([line.probability for line in lines])
    ratio = label / own
    off = np.abs(ratio - 1.0) > ROUNDING
    if (off & ~(ratio < 1.0)).any():
        i = int((off & ~(ratio < 1.0)).argmax())
        fail(i, f"_label_probability must be that of p, {own[i]:g}, got {label[i]:g}")
    return np.where(off & (kept == 1.0), ratio, kept)


def _tags(
    lines: list[Line], action: Ints, row: Ints, fail: Any
) -> list[Sequence[str | None]] | None:
    """Return the names of the actions of each line, or None if no line has any."""
    found = [[getattr(one, "tag", None) for one in _named(line)] for line in lines]
    counts = np.array([sum(tag is not None for tag in one) for one in found])
    if not counts.any():
        return None
    sizes = np.fromiter(map(len, found), np.int64, len(found))
    if (partial := (counts > 0) & (counts < sizes)).any():
        fail(partial.argmax(), "every action must have a _tag, or none")
    for i, one in enumerate(found):
        if counts[i] and len(set(one)) < len(one):
            fail(i, f"every action must have a _tag of its own, got {shown(one)}")
    beyond = (action > sizes[row]) & (sizes[row] > 0)
    if beyond.any():
        at = int(beyond.argmax())
        fail(row[at], f"a must be at most {sizes[row[at]]}, the length of _multi, got {action[at]}")
    if (differ := (counts > 0) != (counts[0] > 0)).any():
        word = "must be there" if counts[0] > 0 else "must not be there"
        fail(differ.argmax(), f"_tag {word}, as in the lines before")
    return list(found)


def _named(line: Line) -> list[Any]:
    return getattr(line.c, "actions", None) or []
