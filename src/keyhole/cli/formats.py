"""Formats of logs, as they are written on a command line."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from keyhole import checks
from keyhole.errors import InvalidValue
from keyhole.evaluation import formats

# Settings that are lists, with their entries between slashes.
LISTS = ("arms", "observation")
BY_ARM = ("probabilities", "mean")
WORDS: dict[str, Any] = {"true": True, "false": False}


def format_from(text: str | None) -> formats.Format | None:
    """Return a format such as "dsjson:slot=0", or None for None.

    Examples
    --------
    >>> format_from("cb:arms=A/B")
    Cb(arms=('A', 'B'))
    """
    if text is None:
        return None
    name, _, rest = text.partition(":")
    if name not in formats.FORMATS:
        raise checks.unknown("--format", name, formats.FORMATS)
    kind = formats.FORMATS[name]
    known = [field.name for field in fields(kind)]
    settings: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidValue(f"--format must be written like dsjson:slot=0, got {text!r}")
        if key not in known:
            raise checks.unknown(f"a setting of {name}", key, known)
        settings[key] = _value(key, value)
    for key in BY_ARM:
        if isinstance(settings.get(key), list):
            columns = settings[key]
            arms = settings.get("arms", ())
            if len(arms) != len(columns):
                raise InvalidValue(
                    f"--format must have a column of {key} for each of {len(arms)} arms, got "
                    f"{len(columns)}"
                )
            settings[key] = dict(zip(arms, columns, strict=True))
    return kind(**settings)


def _value(key: str, text: str) -> Any:
    if key in LISTS or (key in BY_ARM and "/" in text):
        if key == "arms" and text == "numbers":
            return text
        return [_whole(one) for one in text.split("/")] if "/" in text or key == "arms" else text
    return WORDS[text] if text in WORDS else _whole(text)


def _whole(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
