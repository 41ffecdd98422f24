"""`KeyholeLog`: the log that a bandit of Keyhole writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from keyhole.errors import InvalidValue
from keyhole.evaluation.formats.format import Format, Head, Progress
from keyhole.evaluation.formats.sources import given_paths

PARQUET = b"PAR1"
START = b'{"kind":"start"'
# What pyarrow writes into a log as Parquet, at the end of the file.
MARK = b"keyhole.log"


@dataclass(frozen=True, kw_only=True)
class KeyholeLog(Format):
    """The log of a `keyhole.Bandit`, as JSON lines or Parquet."""

    name: ClassVar[str] = "keyhole"
    instead: ClassVar[str] = "a bandit writes its log itself, kh.Bandit(..., log=path)"

    def mismatch(self, head: Head) -> str | None:
        """Return why a file is not, for certain, a log of Keyhole; None if it is."""
        if head.start.startswith(PARQUET):
            return None if _has_mark(head.path) else "it is a Parquet file that no Log wrote"
        return None if head.line.startswith(START) else "its first line is no row of kind 'start'"

    def _read(self, source: Any, progress: Progress | None) -> dict[str, Any]:
        del progress
        paths = given_paths(source)
        if len(paths) > 1:
            raise InvalidValue(f"log must be one file of the format 'keyhole', got {len(paths)}")
        from keyhole.online import Log  # which needs the extra "logs"

        return Log(paths[0]).columns()


def _has_mark(path: str) -> bool:
    """Return whether the metadata at the end of a Parquet file are those of a log."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - (1 << 16), 0))
        return MARK in file.read()
