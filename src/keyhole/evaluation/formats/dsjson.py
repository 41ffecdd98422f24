"""`Dsjson`: logs of Vowpal Wabbit and of Personalizer, one JSON object a line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from keyhole import checks
from keyhole.core import Arm
from keyhole.errors import FileError, InvalidValue, KeyholeWarning, shown
from keyhole.evaluation import extras
from keyhole.evaluation.arms import arm_names
from keyhole.evaluation.formats.format import Columns, Format, Head, Progress
from keyhole.evaluation.formats.sources import blocks, given_paths
from keyhole.files import Path

# Fields that other lines of JSON do not have, and those of a decision without a label.
FIELDS = (b'"_label_cost"', b'"_outcomes"', b'"_label_ca"', b'"_skipLearn"')
UNLABELLED = (b'"a"', b'"p"', b'"c"')


@dataclass(frozen=True, kw_only=True)
class Dsjson(Format):
    """dsjson: the logs of Vowpal Wabbit, and those that Personalizer exports.

    Every line is a round. Its arms are named by `_tag`, as Personalizer does, or else by their
    numbers, from 1. Left out, with a warning, are events that were never activated (`_skipLearn`,
    `_deferred`) and rewards whose decision is not in the file. A line without `_label_cost` and
    `_label_Action` is a round whose reward has not come.

    Features beside `_multi` become the observation if they are numbers, the same in every line;
    where there are none, those of the actions do, one row for each arm. Others are not read.

    Written lines are read by Vowpal Wabbit. The observation becomes the namespace "y". Means and
    widths are not written.

    Parameters
    ----------
    arms : sequence of str or int, or "numbers", optional
        Names of the arms, in the order of the columns. "numbers" are those of the actions, though
        they have tags. By default in the order in which they occur.
    features : bool, default True
        Whether features are read.
    slot : int, optional
        The slot, from 0, whose choices are read from lines with several (`_outcomes`).
    repeated : bool, default False
        Whether an `EventId` may occur again. By default that is an error: the event would count
        twice.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import keyhole as kh
    >>> path = Path(tempfile.mkdtemp(), "old.dsjson")
    >>> line = {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 1}
    >>> line |= {"_labelIndex": 0, "a": [1, 2], "p": [0.8, 0.2]}
    >>> _ = path.write_text(json.dumps(line))
    >>> log = kh.evaluation.Logged.of(path)
    >>> log.arms, log.chosen, log.reward, log.probabilities
    ((1, 2), array([0]), array([1.]), array([[0.8, 0.2]]))
    """

    name: ClassVar[str] = "dsjson"
    arms: Sequence[Arm] | str | None = None
    features: bool = True
    slot: int | None = None
    repeated: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.arms, str) and self.arms != "numbers":
            raise InvalidValue(f"arms must be names or 'numbers', got {shown(self.arms)}")
        if self.arms is not None and not isinstance(self.arms, str):
            object.__setattr__(self, "arms", arm_names(self.arms))
        for name in ("features", "repeated"):
            object.__setattr__(self, name, checks.flag(name, getattr(self, name)))
        if self.slot is not None:
            object.__setattr__(self, "slot", checks.integer("slot", self.slot, min_value=0))

    def mismatch(self, head: Head) -> str | None:
        """Return why a file is not, for certain, dsjson; None if it is."""
        if not head.line.startswith(b"{"):
            return "its first line is no JSON object"
        # The first lines may be rewards of other events. Long ones are cut off, and not decoded.
        if any(field in head.start for field in FIELDS):
            return None
        if all(field in head.line for field in UNLABELLED):
            return None
        return "its first lines have no field _label_cost or _outcomes"

    def _read(self, source: Any, progress: Progress | None) -> dict[str, Any]:
        paths = given_paths(source)
        module = "keyhole.evaluation.formats.dsjson_reading"
        reader = extras.load(module, "dsjson", "logs").Reader(self)
        for block in blocks(paths, progress):
            reader.add(block)
        if reader.n_rounds == 0:
            but = f", only {reader.left_out}" if reader.left_out else ""
            raise FileError(f"{', '.join(paths[:3])} has no decisions{but}")
        if reader.left_out:
            warnings.warn(
                f"{', '.join(paths[:3])}: left out are {reader.left_out}",
                KeyholeWarning,
                stacklevel=2,
            )
        found: dict[str, Any] = reader.columns()
        return found

    def _write(self, log: Columns, path: Path) -> None:
        extras.load("keyhole.evaluation.formats.dsjson_writing", "dsjson", "logs").write(log, path)
