"""A folder of finished replications, from which an interrupted simulation goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keyhole.errors import FileError, InvalidValue
from keyhole.files import read_arrays, replacing, write_arrays
from keyhole.simulation.plan import Plan
from keyhole.simulation.replication import Outcome

PLAN_FILE = "plan.json"


class Store:
    """Finished replications of one plan, a file each, written whole or not at all."""

    def __init__(self, folder: str | os.PathLike[str], plan: Plan, version: str) -> None:
        self.folder = Path(folder)
        described = {**plan.described, "keyhole": version}
        known = self.folder / PLAN_FILE
        if self.folder.exists() and not self.folder.is_dir():
            raise InvalidValue(f"{folder} is a file: resume needs a folder of its own")
        if known.exists():
            self._compare(self._known(known), described)
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise InvalidValue(f"{folder} is not empty and holds no simulation: choose another")
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(known) as file:
                file.write(json.dumps(described, indent=1).encode())

    def _known(self, path: Path) -> dict[str, object]:
        try:
            known = json.loads(path.read_text())
        except ValueError as reason:
            raise FileError(f"{path} is damaged ({reason}): choose another folder") from None
        if not isinstance(known, dict):
            raise FileError(f"{path} is damaged: choose another folder")
        return known

    def _compare(self, known: Mapping[str, object], described: Mapping[str, object]) -> None:
        differ = [name for name in described if known.get(name) != described[name]]
        if differ:
            raise InvalidValue(
                f"{self.folder} holds another simulation, which differs in {', '.join(differ)}: "
                "give the same settings to go on with it, or another folder"
            )

    def path(self, number: int) -> Path:
        """The file of a replication."""
        return self.folder / f"replication-{number:06d}.npz"

    def finished(self, replications: int) -> dict[int, Outcome]:
        """Those of the first replications that are there already."""
        found = {}
        for number in range(replications):
            if self.path(number).exists():
                found[number] = self.read(number)
        return found

    def read(self, number: int) -> Outcome:
        """A finished replication."""
        path, again = self.path(number), "delete it, and it is simulated again"
        try:
            outcome = read_arrays(path)
        except FileError as reason:
            raise FileError(f"{reason}; {again}") from None
        if outcome.pop("number", None) != number:
            raise FileError(f"{path} is not the file of replication {number}; {again}")
        return outcome

    def write(self, number: int, outcome: Outcome) -> None:
        """Keep a finished replication."""
        write_arrays(self.path(number), {"number": np.array(number), **outcome})
