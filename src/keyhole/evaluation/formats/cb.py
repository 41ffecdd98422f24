"""`Cb`: the text format of Vowpal Wabbit for contextual bandits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from keyhole.core import Arm
from keyhole.errors import FileError, InvalidValue
from keyhole.evaluation.arms import arm_names
from keyhole.evaluation.formats.cb_lines import LABEL, SHARED
from keyhole.evaluation.formats.cb_reading import Reader
from keyhole.evaluation.formats.format import Columns, Format, Head, Progress, require_rewards
from keyhole.evaluation.formats.sources import blocks, given_paths
from keyhole.files import Path, replacing

# Rows that are written at a time.
GROUP = 10_000


@dataclass(frozen=True, kw_only=True)
class Cb(Format):
    r"""Text of Vowpal Wabbit: `action:cost:probability | features`, or several lines a round.

    Actions are numbered from 1. With `--cb_adf` a round is a line `shared | features`, which may be
    missing, and a line for each action, the chosen one with the label; a blank line ends it. An
    action is then named by its place. Numbers behind a label are further candidates. Only the
    probability of the chosen action is there.

    Features become the observation if they are the same in every line: those of the line, or of
    `shared`. A feature without a value is 1. Other features are not read.

    Written is a line for each round. Names of arms, and probabilities of others, are not written.

    Parameters
    ----------
    arms : sequence of str or int, optional
        Names of the actions 1, 2, ... By default their numbers, up to the largest in the file: give
        names if the last actions were never chosen.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import keyhole as kh
    >>> path = Path(tempfile.mkdtemp(), "old.vw")
    >>> _ = path.write_text("1:-1:0.8 | age:41\n2:0:0.2 | age:35\n")
    >>> log = kh.evaluation.Logged.of(path, format=kh.evaluation.formats.Cb(arms=["A", "B"]))
    >>> log.chosen, log.reward, log.observation[:, 0, 0]
    (array([0, 1]), array([1., 0.]), array([41., 35.]))
    """

    name: ClassVar[str] = "cb"
    arms: Sequence[Arm] | None = None

    def __post_init__(self) -> None:
        if self.arms is not None:
            object.__setattr__(self, "arms", arm_names(self.arms))

    def mismatch(self, head: Head) -> str | None:
        """Return why a file is not, for certain, such text; None if it is."""
        is_shared = head.line.split(b"|")[0].split() == [SHARED]
        lines = head.start.split(b"\n") if head.line.startswith(b"|") else [head.line]
        if is_shared or any(LABEL.match(line) for line in lines):
            return None
        return "its first line does not begin with action:cost:probability, or shared"

    def _read(self, source: Any, progress: Progress | None) -> dict[str, Any]:
        paths, reader = given_paths(source), Reader(self.arms)
        for block in blocks(paths, progress):
            reader.add(block)
        reader.finish()
        if reader.n_rounds == 0:
            raise FileError(f"{', '.join(paths[:3])} has no decisions")
        return reader.columns()

    def _write(self, log: Columns, path: Path) -> None:
        require_rewards(log, "the format 'cb'")
        y, k = log.observation, log.n_arms
        if y is not None and y.shape[1] > 1:
            raise InvalidValue(
                "observation must have one row for all arms in the format 'cb', got one for each: "
                "write the format 'dsjson'"
            )
        alone = (log.candidates.sum(axis=1) == 1) & (k > 1)
        if alone.any():
            raise InvalidValue(
                f"candidates[{int(alone.argmax())}] must be two or more in the format 'cb', where "
                "one alone stands for all: write the format 'dsjson'"
            )
        label = list(
            zip(log.chosen.tolist(), log.reward.tolist(), log.probability.tolist(), strict=True)
        )
        with replacing(path) as file:
            for start in range(0, log.n_rounds, GROUP):
                text = []
                for t, (arm, reward, p) in enumerate(label[start : start + GROUP], start=start):
                    others = [i + 1 for i in range(k) if log.candidates[t, i] and i != arm]
                    more = "" if len(others) == k - 1 else "".join(f" {i}" for i in others)
                    seen = "" if y is None else _features(y[t, 0].tolist())
                    text.append(f"{arm + 1}:{0.0 - reward!r}:{p!r}{more} |{seen}\n")
                file.write("".join(text).encode())


def _features(values: list[float]) -> str:
    return "y " + " ".join(f"y{i}:{one!r}" for i, one in enumerate(values))
