"""Every format by its name, and the one that a source has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from keyhole import checks
from keyhole.errors import FileError, InvalidValue
from keyhole.evaluation.formats.cb import Cb
from keyhole.evaluation.formats.dsjson import Dsjson
from keyhole.evaluation.formats.format import Format, Progress
from keyhole.evaluation.formats.frame import Frame, is_frame
from keyhole.evaluation.formats.keyhole_log import KeyholeLog
from keyhole.evaluation.formats.obp import NEEDED, Obp
from keyhole.evaluation.formats.open_bandit import OpenBandit
from keyhole.evaluation.formats.sources import head_of, paths_of

# A new format is a file and a line here.
FORMATS: dict[str, type[Format]] = {
    "keyhole": KeyholeLog,
    "dsjson": Dsjson,
    "personalizer": Dsjson,
    "cb": Cb,
    "open-bandit": OpenBandit,
    "obp": Obp,
    "frame": Frame,
}


def format_of(given: str | Format) -> Format:
    """Return a format by its name, or as it was given."""
    if isinstance(given, Format):
        return given
    if not isinstance(given, str) or given not in FORMATS:
        raise checks.unknown("format", given, FORMATS)
    return FORMATS[given]()


def read_columns(
    source: object, given: str | Format | None, progress: Progress | None
) -> Mapping[str, Any]:
    """Return the columns of a log, of any source.

    Parameters
    ----------
    source : object
        The log, as in `Logged.of`.
    given : str, Format or None
        Its format. None is that of the content.
    progress : callable or None
        Called with the bytes that were read and those of all files.
    """
    if given is not None:
        return format_of(given).read(source, progress)
    paths = paths_of(source)
    if paths is not None:
        return detected(paths).read(paths, progress)
    columns = getattr(source, "columns", None)
    found = columns() if callable(columns) else source
    if isinstance(found, Mapping):
        return Obp().read(found) if all(name in found for name in NEEDED) else found
    if is_frame(source):
        return Frame().read(source)
    raise InvalidValue(
        "log must be a Logged, a Log or its path, a mapping of columns, a frame, or an object with "
        f"a method columns() that returns a mapping, got {type(source).__name__}"
    )


def detected(paths: list[str]) -> Format:
    """Return the format of files by their content.

    Parameters
    ----------
    paths : list of str
        The files. All must be of one format.

    Raises
    ------
    FileError
        If it is not certain. The message names what was tried.
    """
    found = [_detected(path) for path in paths]
    for path, one in zip(paths, found, strict=True):
        if type(one) is not type(found[0]):
            raise FileError(
                f"files must be of one format: {paths[0]} is of {found[0].name!r}, {path} of "
                f"{one.name!r}"
            )
    return found[0]


def _detected(path: str) -> Format:
    head = head_of(path)
    tried: dict[str, str] = {}
    for kind in dict.fromkeys(FORMATS.values()):
        made = kind()
        reason = made.mismatch(head)
        if reason is None:
            return made
        tried[made.name] = reason
    said = "; ".join(f"not {name!r}: {reason}" for name, reason in tried.items())
    raise FileError(f"the format of {os.fspath(path)} is not certain, give format=... ({said})")
