"""A folder of finished replications, from which an interrupted simulation resumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keyhole import files
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.lab.simulation.plan import Plan
from keyhole.lab.simulation.replication import Outcome, outcome_shapes
from keyhole.lab.simulation.sources import SOURCES

PLAN_FILE = "plan.json"
AGAIN = "delete it, and it is simulated again"


class Store:
    """Finished replications of one plan, one file each, written completely or not at all.

    They are taken up again only by the sources of Keyhole that made them.

    Parameters
    ----------
    folder : str or os.PathLike
        A folder that is empty, does not exist yet, or belongs to the same plan.
    plan : Plan
        The plan of the simulation.
    """

    def __init__(self, folder: files.Path, plan: Plan) -> None:
        self.folder = Path(files.checked_path("resume", folder))
        self.plan = plan
        described = {**plan.described, "sources": SOURCES}
        with files.naming("write", str(folder)):
            if self.folder.exists() and not self.folder.is_dir():
                raise InvalidValue(f"resume must be a folder, got the file {folder}")
            self.folder.mkdir(parents=True, exist_ok=True)
            known, reason = self._known()
            if known is None:
                self._check_empty(reason)
                with files.replacing(self.folder / PLAN_FILE) as file:
                    file.write(json.dumps(described, indent=1).encode())
                return
        self._compare(known, described)

    def _known(self) -> tuple[dict[str, object] | None, str]:
        """Return the plan of the folder, or None and the reason."""
        try:
            known = json.loads((self.folder / PLAN_FILE).read_text())
        except FileNotFoundError:
            return None, ""
        except (ValueError, RecursionError) as reason:
            return None, f"{PLAN_FILE} is damaged ({reason})"
        if not isinstance(known, dict):
            return None, f"{PLAN_FILE} is damaged (it is not a JSON object)"
        return known, ""

    def _check_empty(self, reason: str) -> None:
        """Refuse a folder without a complete plan, unless it contains only an incomplete one."""
        mine = [path for path in self.folder.iterdir() if path.name.startswith(PLAN_FILE)]
        others = sorted(path.name for path in self.folder.iterdir() if path not in mine)
        if others and reason:
            raise FileError(
                f"{self.folder}: {reason}, and the folder also has {others[0]}: choose another"
            )
        if others:
            raise InvalidValue(
                f"resume must be a new folder or one of a simulation, got {self.folder}, which has "
                f"{others[0]}"
            )

    def _compare(self, known: Mapping[str, object], described: Mapping[str, object]) -> None:
        differ = [name for name in described if known.get(name) != described[name]]
        if differ == ["sources"]:
            raise InvalidValue(
                f"{self.folder} holds results of other sources of Keyhole, "
                f"{shown(known.get('sources'))} and not {SOURCES!r}, which may differ: give "
                "another folder, or delete it to simulate again"
            )
        if differ:
            raise InvalidValue(
                f"{self.folder} holds another simulation, which differs in {', '.join(differ)}: "
                "give the same settings to continue it, or another folder"
            )

    def path(self, number: int) -> Path:
        """Return the file of a replication."""
        return self.folder / f"replication-{number:06d}.npz"

    def finished(self, replications: int) -> dict[int, Outcome]:
        """Return the outcomes of those of the first `replications` that are finished."""
        found = {}
        for number in range(replications):
            if self.path(number).exists():
                found[number] = self.read(number)
        # The world decides whether rounds have right answers, so all files must agree.
        with_answers = [number for number, outcome in found.items() if "correct" in outcome]
        if with_answers and len(with_answers) < len(found):
            odd = min(set(found) - set(with_answers))
            raise FileError(f"{self.path(odd)} lacks the array 'correct' that others have; {AGAIN}")
        return found

    def read(self, number: int) -> Outcome:
        """Read a finished replication.

        Raises
        ------
        FileError
            If the file is damaged, or is not that of this replication of this plan.
        """
        path = self.path(number)
        try:
            outcome = files.read_arrays(path)
        except FileError as reason:
            if isinstance(reason, OSError):  # the content of the file is not damaged
                raise
            raise FileError(f"{reason}; {AGAIN}") from None
        given = outcome.pop("number", np.array("none"))
        if given.shape != () or given.dtype.kind != "i" or int(given) != number:
            raise FileError(f"{path} is not the file of replication {number}; {AGAIN}")
        self._check(path, outcome)
        return outcome

    def _check(self, path: Path, outcome: Outcome) -> None:
        """Refuse arrays that no replication of this plan can give."""
        answers = "correct" in outcome
        shapes = outcome_shapes(self.plan, answers=answers)
        for name in {*shapes, *outcome}:
            array = outcome.get(name)
            found = None if array is None else (array.dtype.str, array.shape)
            expected = (np.dtype(np.float64).str, shapes[name]) if name in shapes else None
            if found != expected:
                raise FileError(f"{path} has {name} as {found}, not {expected}; {AGAIN}")
            if array is not None and not _plausible(name, array):
                raise FileError(f"{path} has invalid numbers in {name}; {AGAIN}")

    def write(self, number: int, outcome: Outcome) -> None:
        """Write a finished replication.

        Parameters
        ----------
        number : int
            The number of the replication.
        outcome : dict of str to numpy.ndarray
            The outcome of the replication.
        """
        files.write_arrays(self.path(number), {"number": np.array(number), **outcome})


def _plausible(name: str, array: np.ndarray) -> bool:
    """Return whether the numbers are valid: counts for pulls, and none of the others negative."""
    if name == "pulls":
        return bool((np.isfinite(array) & (array >= 0.0) & (array == array.round())).all())
    return bool((~(array < 0.0)).all())
