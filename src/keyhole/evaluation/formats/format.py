"""What a format of logs is: a frozen recipe that recognises, reads and writes files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from keyhole.core import Arm, Floats, Ints
from keyhole.errors import InvalidValue
from keyhole.files import Path

# Called with the bytes that were read, and those of all files.
Progress: TypeAlias = Callable[[int, int], None]


class Head(NamedTuple):
    """The beginning of a file, by which its format is recognised."""

    path: str
    start: bytes  # the first bytes, decompressed

    @property
    def line(self) -> bytes:
        """The first line that is not blank."""
        return self.start.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0].rstrip()


class Columns(Protocol):
    """The columns of a log that are written: those of `keyhole.evaluation.Logged`."""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Names of the arms."""

    @property
    def chosen(self) -> Ints:
        """Index of the chosen arm, (n,)."""

    @property
    def probability(self) -> Floats:
        """Its probability, (n,)."""

    @property
    def reward(self) -> Floats:
        """Its reward, NaN where it has not come, (n,)."""

    @property
    def propensity(self) -> Floats | None:
        """Probability of every arm, (n, K)."""

    @property
    def observation(self) -> Floats | None:
        """Observation, (n, 1, d) or (n, K, d)."""

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """Whether each arm could be chosen, (n, K)."""

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""

    @property
    def n_arms(self) -> int:
        """Number of arms."""


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """A format of logs. A new one is a subclass in a file of its own, and a line in `FORMATS`."""

    name: ClassVar[str]
    instead: ClassVar[str] = ""  # what to do instead, in a format without `write`

    @abstractmethod
    def mismatch(self, head: Head) -> str | None:
        """Return why a file is not, for certain, of this format; None if it is."""

    def read(self, source: Any, progress: Progress | None = None) -> dict[str, Any]:
        """Return the columns of a log, arguments of `keyhole.evaluation.Logged`.

        Parameters
        ----------
        source : path, list of paths, or object
            Files of this format, or what it is in memory.
        progress : callable, optional
            Called with the bytes that were read and those of all files.

        Raises
        ------
        FileError, InvalidValue
            If the source cannot be read. The message names the line and the field, or the row and
            the column.
        UnknownArm
            If an arm is not among those that were given.
        """
        return self._read(source, progress)

    @abstractmethod
    def _read(self, source: Any, progress: Progress | None) -> dict[str, Any]: ...

    def write(self, log: Columns, path: Path) -> int:
        """Write a log to a file, which is replaced in one step, and return the number of rows.

        Parameters
        ----------
        log : Logged
            The log.
        path : path-like
            The file.

        Raises
        ------
        InvalidValue
            If logs cannot be written in this format, or not this one. Nothing is written.
        """
        self._write(log, path)
        return log.n_rounds

    def _write(self, log: Columns, path: Path) -> None:
        del log, path
        raise InvalidValue(f"the format {self.name!r} is not written: {self.instead}")


def require_rewards(log: Columns, format_: str) -> None:
    """Raise if a reward is missing, for a format that has no place for that.

    Parameters
    ----------
    log : Logged
        The log.
    format_ : str
        The format, in the error message.
    """
    missing = np.isnan(log.reward)
    if missing.any():
        t = int(missing.argmax())
        raise InvalidValue(
            f"reward[{t}] must be a number, got nan: {format_} has no missing rewards. Write the "
            f"rounds before it, log.head({t})"
        )
