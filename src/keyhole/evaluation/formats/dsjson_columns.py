"""Rounds of dsjson from many blocks, put together as the columns of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keyhole.core import Arm, Floats, Ints
from keyhole.errors import FileError, UnknownArm, shown
from keyhole.evaluation.formats.dsjson_features import Template
from keyhole.evaluation.formats.dsjson_rounds import Rounds
from keyhole.evaluation.formats.sources import Block
from keyhole.evaluation.formats.tables import check_size


class Part(NamedTuple):
    """Rounds of a block, with the indices of their arms."""

    rounds: Rounds
    arm: Ints  # (entries,)
    features: Floats | None  # (n, d), or (entries, d) if each action has its own
    path: str
    line: Ints  # (n,)
    event: Ints  # (n,), the hash of the event's id, 0 without one


class Arms:
    """Arms by their tags, or by the numbers of the actions.

    Parameters
    ----------
    given : sequence, "numbers" or None
        As in `Dsjson`.
    """

    def __init__(self, given: Sequence[Arm] | str | None) -> None:
        self._given = None if given is None or isinstance(given, str) else tuple(given)
        self._are_numbers = isinstance(given, str)
        self._index = {str(arm): k for k, arm in enumerate(self._given or ())}

    def of(self, block: Block, where: list[int], rounds: Rounds) -> Ints:
        """Return the index of the arm of each entry.

        Parameters
        ----------
        block : Block
            The block of the rounds.
        where : list of int
            Places of the rounds in the block.
        rounds : Rounds
            The rounds.

        Raises
        ------
        UnknownArm
            If an arm is not among the given ones.
        """
        if rounds.tags is None or self._are_numbers:
            self._are_numbers = True
            wrong = rounds.action > len(self._given) if self._given is not None else None
            if self._given is not None and wrong is not None and wrong.any():
                at = int(wrong.argmax())
                raise UnknownArm(
                    f"{block.place(where[rounds.row[at]])}: a must be at most {len(self._given)}, "
                    f"the number of the given arms, got {rounds.action[at]}"
                )
            return rounds.action - 1
        index = self._index
        if self._given is None:
            flat = [index.setdefault(tag, len(index)) for one in rounds.tags for tag in one]  # type: ignore[arg-type]
        else:
            flat = [index.get(tag, -1) for one in rounds.tags for tag in one]  # type: ignore[arg-type]
        sizes = np.fromiter(map(len, rounds.tags), np.int64, len(rounds.tags))
        first = np.cumsum(sizes) - sizes
        arm: Ints = np.array(flat)[first[rounds.row] + rounds.action - 1]
        if (arm < 0).any():
            at = int((arm < 0).argmax())
            i = rounds.row[at]
            raise UnknownArm(
                f"{block.place(where[i])}: _tag must be one of the given arms "
                f"{shown(self._given)}, got {rounds.tags[i][rounds.action[at] - 1]!r}"
            )
        return arm

    def names(self, parts: list[Part]) -> tuple[Arm, ...]:
        """Return the names of all arms that were seen in the parts, or that were given."""
        if self._given is not None:
            return self._given
        if not self._are_numbers:
            return tuple(self._index)
        return tuple(range(1, 1 + max(int(part.rounds.action.max()) for part in parts)))


def check_events(parts: list[Part]) -> None:
    """Raise if two rounds are of the same event.

    Ids are compared by hashes of 64 bits: n different ones are taken for equal with a probability
    of n^2 / 2^65.
    """
    event = np.concatenate([part.event for part in parts])
    place = np.arange(len(event))[event != 0]
    order = place[np.argsort(event[place], kind="stable")]
    again = event[order][1:] == event[order][:-1]
    if not again.any():
        return
    at = int(again.argmax())
    lines = [(part.path, int(line)) for part in parts for line in part.line]
    (path, line), (other, earlier) = lines[order[at + 1]], lines[order[at]]
    raise FileError(
        f"line {line:,} of {path}: EventId must be new, got that of line {earlier:,} of {other}: "
        "the event would count twice. Give every file once, or format=Dsjson(repeated=True)"
    )


def columns_of(
    parts: list[Part], arms: tuple[Arm, ...], template: Template | None
) -> dict[str, Any]:
    """Return the columns of a log.

    Parameters
    ----------
    parts : list of Part
        The rounds, in order.
    arms : tuple
        Names of the arms.
    template : Template or None
        What the features are, if all rounds have them.
    """
    n, k = sum(len(part.rounds.chosen) for part in parts), len(arms)
    check_size("probabilities", n, k, "format=Dsjson(arms='numbers')")
    has_p = parts[0].rounds.p is not None
    candidates = np.zeros((n, k), bool)
    probabilities = np.zeros((n, k)) if has_p else None
    observation = _empty(parts, template, n, k)
    start, chosen = 0, []
    for part in parts:
        rounds = part.rounds
        row = start + rounds.row
        candidates[row, part.arm] = True
        if probabilities is not None:
            probabilities[row, part.arm] = rounds.p
        if observation is not None and template is not None:
            if template.by_action:
                observation[row, part.arm] = part.features
            else:
                observation[start : start + len(rounds.chosen)] = part.features
        chosen.append(part.arm[rounds.action == rounds.chosen[rounds.row]])
        start += len(rounds.chosen)
    return {
        "arms": arms,
        "chosen": np.concatenate(chosen),
        "probability": np.concatenate([part.rounds.probability for part in parts]),
        "reward": np.concatenate([part.rounds.reward for part in parts]),
        "probabilities": probabilities,
        "observation": observation,
        "candidates": candidates,
    }


def _empty(parts: list[Part], template: Template | None, n: int, k: int) -> Floats | None:
    if template is None or any(part.features is None for part in parts):
        return None
    d = len(template.names)
    check_size("observation", n, d * (k if template.by_action else 1), "Dsjson(features=False)")
    return np.full((n, k, d), np.nan) if template.by_action else np.empty((n, d))
