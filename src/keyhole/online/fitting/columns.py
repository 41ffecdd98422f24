"""Which columns of a source have arm, reward and observation, and what types they may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from keyhole import checks
from keyhole.core import Learner
from keyhole.errors import InvalidValue, shown
from keyhole.online.arrow import arrow
from keyhole.online.fitting.parts import schema_of
from keyhole.online.fitting.sources import Source

NAMES = ("arm", "reward", "observation")


class Columns(NamedTuple):
    """The columns that are read of a source.

    Attributes
    ----------
    arm, reward : str
        Columns of the names of arms, and of rewards.
    observation : str or tuple of str
        One column of lists of numbers, or a column for each number or field.
    """

    arm: str
    reward: str
    observation: str | tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns."""
        seen = self.observation
        return (self.arm, self.reward, *((seen,) if isinstance(seen, str) else seen))


def columns_of(given: object, learner: Learner) -> Columns:
    """Return the columns that a user named.

    Parameters
    ----------
    given : mapping or None
        Names of columns for "arm", "reward" and "observation"; by default these words.
    learner : Learner
        With features, the columns of the observation are their fields.
    """
    if not isinstance(given, Mapping | None):
        raise InvalidValue(
            "columns must be a dict such as {'arm': 'treatment', 'reward': 'outcome', "
            f"'observation': ['age', 'dose']}}, got {shown(given)}"
        )
    known: dict[str, Any] = dict(given or {})
    for name in known:
        if name not in NAMES:
            raise checks.unknown("a key of columns", name, NAMES)
    if learner.features is not None:
        if "observation" in known:
            raise InvalidValue(
                "columns must not name an observation where the learner has features: their fields "
                f"are the columns, got {shown(known['observation'])}"
            )
        fields: Any = learner.features
        known["observation"] = fields.frame_fields
    seen = known.get("observation", "observation")
    if not isinstance(seen, str):
        listed = tuple(seen) if checks.is_listing(seen) else ()
        if not listed or not all(isinstance(name, str) for name in listed):
            raise InvalidValue(
                "columns['observation'] must be a column of lists, or a list of columns, "
                f"got {shown(seen)}"
            )
        seen = listed
    names = [known.get(name, name) for name in ("arm", "reward")]
    for name, one in zip(("arm", "reward"), names, strict=True):
        if not isinstance(one, str):
            raise InvalidValue(f"columns[{name!r}] must be the name of a column, got {shown(one)}")
    found = Columns(names[0], names[1], seen)
    for name in found.names:
        if found.names.count(name) > 1:
            raise InvalidValue(f"columns must be different ones, got {name!r} twice")
    return found


def check_schema(source: Source, columns: Columns, *, is_encoded: bool) -> int | None:
    """Return the length of an observation, None if rows tell; raise if a column cannot be used.

    Parameters
    ----------
    source : Source
        The source.
    columns : Columns
        Its columns.
    is_encoded : bool
        Whether observations are made of fields, which may have any type.
    """
    schema = schema_of(source)
    for name in columns.names:
        if schema.names.count(name) != 1:
            there = ", ".join(schema.names[:20]) + (", ..." if len(schema.names) > 20 else "")
            often = "has no column" if name not in schema.names else "has more than one column"
            raise InvalidValue(f"{source.name} {often} {name!r}; its columns are {there}")
    types = arrow().types
    arm = schema.field(columns.arm).type
    arm = arm.value_type if types.is_dictionary(arm) else arm
    if not (_is_text(arm) or types.is_integer(arm) or types.is_null(arm)):
        raise _wrong(source, columns.arm, "names of arms, texts or whole numbers", arm)
    reward = schema.field(columns.reward).type
    if not is_number(reward):
        raise _wrong(source, columns.reward, "numbers", reward)
    if is_encoded:
        return None
    if not isinstance(columns.observation, str):
        for name in columns.observation:
            if not is_number(schema.field(name).type):
                raise _wrong(source, name, "numbers", schema.field(name).type)
        return len(columns.observation)
    seen = schema.field(columns.observation).type
    if is_number(seen):
        return 1
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if not any(test(seen) for test in lists) or not is_number(seen.value_type):
        raise _wrong(source, columns.observation, "lists of numbers, or numbers", seen)
    return seen.list_size if types.is_fixed_size_list(seen) else None


def _is_text(kind: Any) -> bool:
    types = arrow().types
    tests = (types.is_string, types.is_large_string, getattr(types, "is_string_view", None))
    return any(test(kind) for test in tests if test is not None)


def is_number(kind: Any) -> bool:
    """Return whether a type of Arrow is one of numbers or truth values, or of null alone."""
    types = arrow().types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def _wrong(source: Source, name: str, wanted: str, kind: Any) -> InvalidValue:
    return InvalidValue(f"column {name!r} of {source.name} must have {wanted}, got {kind}")
