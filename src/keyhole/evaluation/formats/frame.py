"""`Frame`: tables with named columns, in files or in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from keyhole import checks
from keyhole.core import Arm, arm_name
from keyhole.errors import InvalidValue, UnknownArm, shown
from keyhole.evaluation.arms import arm_names
from keyhole.evaluation.formats.arrow import FILE, PARQUET, STREAM, Table, arrow, table_of
from keyhole.evaluation.formats.format import Columns, Format, Head, Progress
from keyhole.files import Path, replacing

# The name of a column of lists, or of a column for each arm.
ByArm: TypeAlias = str | Mapping[Arm, str] | None
# What a table of `write` has in its metadata: arms, and what is the same in all rows.
METADATA = b"keyhole.columns"
LISTS = ("probabilities", "mean", "width", "optimism", "dispersion", "observation", "candidates")
ARROW = (".arrow", ".feather", ".ipc")


@dataclass(frozen=True, kw_only=True)
class Frame(Format):
    """A table with a row for each round: Parquet, Arrow or CSV, or a frame in memory.

    Frames are those of pandas, polars and pyarrow, and any stream of Arrow batches. A table that
    Keyhole wrote has all columns of a log, and needs no names. A null reward has not come.

    Written is Parquet, or Arrow if the name ends in .arrow, and nothing is lost.

    Parameters
    ----------
    arm, probability, reward : str
        Columns of the chosen arm, its probability and its reward. By default "arm", "probability"
        and "reward".
    arms : sequence of str or int, optional
        Names of the arms. By default those of the mapping `probabilities` or `mean`, or else all
        that were chosen, sorted.
    probabilities, mean : str, or mapping from arms to str, optional
        A column of lists, in the order of `arms`, or a column for each arm: the probability of
        every arm, and the expected reward.
    observation : str or sequence of str, optional
        A column of lists or of numbers, or columns of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> import keyhole as kh
    >>> frame = pd.DataFrame({"item": ["A", "B"], "p": [0.5, 0.5], "clicked": [1, 0]})
    >>> names = kh.evaluation.formats.Frame(arm="item", probability="p", reward="clicked")
    >>> kh.evaluation.Logged.of(frame, format=names)
    Logged(2 rounds, 2 arms)
    """

    name: ClassVar[str] = "frame"
    arm: str = "arm"
    probability: str = "probability"
    reward: str = "reward"
    arms: Sequence[Arm] | None = None
    probabilities: ByArm = None
    mean: ByArm = None
    observation: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.arms is not None:
            object.__setattr__(self, "arms", arm_names(self.arms))
        for name in ("arm", "probability", "reward"):
            if not isinstance(getattr(self, name), str):
                raise InvalidValue(
                    f"{name} must be the name of a column, got {shown(getattr(self, name))}"
                )
        for name in ("probabilities", "mean"):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str | Mapping)):
                raise InvalidValue(
                    f"{name} must be a column of lists, or a mapping from arms to columns, got "
                    f"{shown(value)}"
                )

    def mismatch(self, head: Head) -> str | None:
        """Return why a file is not, for certain, a table with these columns; None if it is."""
        if head.start.startswith((PARQUET, FILE, STREAM)):
            return None
        names = [
            name.strip().strip(b'"').decode("utf-8", "replace") for name in head.line.split(b",")
        ]
        lost = [one for one in (self.arm, self.probability, self.reward) if one not in names]
        return f"its first line has no column {lost[0]!r}" if lost else None

    def _read(self, source: Any, progress: Progress | None) -> dict[str, Any]:
        table = table_of(source, progress)
        written = _written(table)
        for name in (self.arm, self.probability, self.reward):
            if name not in table.data.column_names:
                raise table.error(
                    f"there must be a column {name!r}, got {shown(table.data.column_names)}: name "
                    "the columns, format=Frame(arm=..., probability=..., reward=...)"
                )
        arms = self.arms or written.pop("arms", None)
        chosen, arms = self._chosen(table, arms)
        p, reward = table.numbers(self.probability), table.numbers(self.reward)
        table.wrong(self.probability, "above 0 and at most 1", p, ~(p > 0.0) | ~(p <= 1.0))
        table.wrong(self.reward, "finite", reward, np.isinf(reward))
        columns = {"arms": arms, "chosen": chosen, "probability": p, "reward": reward, **written}
        for name in ("probabilities", "mean"):
            if getattr(self, name) is not None:
                columns[name] = _by_arm(table, name, getattr(self, name), arms)
        if self.observation is not None:
            columns["observation"] = _observation(table, self.observation)
        return columns

    def _chosen(self, table: Table, arms: Sequence[Arm] | None) -> tuple[Any, tuple[Arm, ...]]:
        """Return the index of the chosen arm in each row, and the arms."""
        index, seen = table.names(self.arm)
        named = next(
            (one for one in (self.probabilities, self.mean) if isinstance(one, Mapping)), None
        )
        given = arms or (None if named is None else arm_names(named))
        if given is None:
            if self.probabilities is not None or self.mean is not None:
                raise InvalidValue("arms must be given, in the order of the lists, got None")
            return index, tuple(seen)
        places = {arm: k for k, arm in enumerate(given)}
        place = np.array([places.get(arm, -1) for arm in seen])
        if (place < 0).any():
            row = int((place[index] < 0).argmax())
            raise UnknownArm(
                f"{table.origin}: column {self.arm!r}, row {row:,} must be one of the arms "
                f"{shown(tuple(given))}, got {seen[index[row]]!r}"
            )
        return place[index], tuple(given)

    def _write(self, log: Columns, path: Path) -> None:
        if not str(path).endswith((*ARROW, ".parquet")) and "." in os.path.basename(path):
            raise InvalidValue(
                f"path must end in .parquet, or in {', '.join(ARROW)}, for the format 'frame', got "
                f"{shown(str(path))}"
            )
        table = to_table(log)
        with replacing(path) as file:
            if str(path).endswith(ARROW):
                with arrow("ipc").new_file(file, table.schema) as writer:
                    writer.write_table(table)
            else:
                arrow("parquet").write_table(table, file)


def is_frame(source: object) -> bool:
    """Return whether a source is a frame of pandas, polars or pyarrow, or an Arrow stream."""
    return hasattr(source, "__arrow_c_stream__")


def to_table(log: Any) -> Any:
    """Return all columns of a log as a pyarrow table."""
    pa = arrow()
    kinds = {type(arm) for arm in log.arms}
    if len(kinds) > 1:
        raise InvalidValue(
            f"arms must be all texts or all whole numbers in a table, got {shown(log.arms)}"
        )
    columns = {
        "arm": pa.array([log.arms[i] for i in log.chosen.tolist()]),
        "probability": pa.array(log.probability),
        "reward": pa.array(log.reward),
        "epsilon": pa.array(np.array(log.epsilon)),
    }
    for name in LISTS:
        values = getattr(log, name)
        if values is not None:
            columns[name] = _nested(np.ascontiguousarray(values))
    same = {"arms": log.arms, "sharing": log.sharing, "prior_precision": log.prior_precision}
    return pa.table(columns).replace_schema_metadata({METADATA: json.dumps(same).encode()})


def _nested(values: Any) -> Any:
    """Return an array (n, ...) as a column of lists of fixed sizes."""
    pa = arrow()
    found = pa.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        found = pa.FixedSizeListArray.from_arrays(found, size)
    return found


def _written(table: Table) -> dict[str, Any]:
    """Return the columns of a table that Keyhole wrote, but for those that every table has."""
    text = (table.data.schema.metadata or {}).get(METADATA)
    if text is None:
        return {}
    try:
        found: dict[str, Any] = json.loads(text)
        found["arms"] = tuple(arm_name(one) for one in found["arms"])
    except (ValueError, KeyError, TypeError) as reason:
        raise table.error(f"the metadata of Keyhole are damaged: {reason}") from None
    for name in LISTS:
        if name in table.data.column_names:
            values = table.lists(name)
            found[name] = values > 0.0 if name == "candidates" else values
    if "epsilon" in table.data.column_names:
        found["epsilon"] = table.numbers("epsilon")
    return found


def _by_arm(table: Table, name: str, given: str | Mapping[Arm, str], arms: tuple[Arm, ...]) -> Any:
    if isinstance(given, str):
        found = table.lists(given)
        if found.shape[1:] != (len(arms),):
            raise table.error(
                f"column {given!r} must have lists of {len(arms)} numbers, one for each arm, got "
                f"{found.shape[1:]}"
            )
    else:
        lost = [arm for arm in arms if arm not in given]
        if lost:
            raise checks.unknown(name, lost[0], map(str, given))
        found = np.column_stack([table.numbers(given[arm]) for arm in arms])
    if name == "probabilities":
        wrong = ~(found >= 0.0) | ~(found <= 1.0)
        at = wrong.argmax(axis=1)
        first = found[np.arange(len(found)), at]
        field = (
            given if isinstance(given, str) else given[arms[int(at[wrong.any(axis=1).argmax()])]]
        )
        table.wrong(field, "from 0 to 1", first, wrong.any(axis=1))
    return found


def _observation(table: Table, given: str | Sequence[str]) -> Any:
    if isinstance(given, str):
        found = table.lists(given)
        return found[:, None] if found.ndim == 1 else found
    return np.column_stack([table.numbers(name) for name in given])
