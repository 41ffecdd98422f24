"""Features in the contexts of dsjson, where they are vectors: numbers only, in every line the same.

Shared features are those beside `_multi`, the list of the actions. As in Vowpal Wabbit, names that
begin with `_` are no features. A typed decoder is made from the first line, since it is several
times as fast as one for any JSON; a line that does not fit is looked at as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from keyhole.evaluation.formats.dsjson_lines import NOTHING, Action

# Appends the numbers of a decoded value to a list.
Getter: TypeAlias = Callable[[Any, list[float]], None]
# Personalizer adds the name of an action to its features.
PERSONALIZER = ("i", {"constant", "id"})
# What is read besides features: attribute, type and default by name.
KNOWN: dict[str, tuple[str, Any, Any]] = {
    "_multi": ("actions", list[Action] | None, None),
    "_tag": ("tag", str | None, None),
}


class Template(NamedTuple):
    """The features of a file: their names, the type that decodes them, and their numbers."""

    names: tuple[str, ...]
    kind: Any  # of the context
    get: Getter
    by_action: bool  # whether they are those of each action

    def values(self, context: Any) -> list[list[float]]:
        """Return a row of numbers for all actions, or one for each, of a decoded context."""
        found: list[list[float]] = []
        for one in context.actions if self.by_action else [context]:
            row: list[float] = []
            self.get(one, row)
            found.append(row)
        return found

    def values_of(self, plain: Any) -> list[list[float]] | None:
        """Return the same of a context as plain JSON; None if its features are others."""
        rows: list[list[float]] = []
        for one in _parts(plain, self.by_action) or ():
            found = flatten(one)
            if found is None or found.keys() != set(self.names):
                return None
            rows.append([found[name] for name in self.names])
        return rows or None


def template_of(plain: Any) -> Template | None:
    """Return the features of a context as plain JSON, or None if they are no vectors of numbers."""
    shared = flatten(plain) if isinstance(plain, dict) else None
    if shared is None:
        return None
    by_action = not shared
    parts = _parts(plain, by_action)
    found = [flatten(one) for one in parts or ()]
    if (
        not found
        or not found[0]
        or any(one is None or one.keys() != found[0].keys() for one in found)
    ):
        return None
    assert parts is not None
    kind, get = _typed(parts[0])
    if by_action:
        actions: list[Any] = [("actions", list[kind])]  # type: ignore[valid-type]
        kind = msgspec.defstruct("Listed", actions, rename={"actions": "_multi"}, gc=False)
    return Template(tuple(found[0]), kind, get, by_action)


def _parts(plain: Any, by_action: bool) -> list[Any] | None:
    if not isinstance(plain, dict):
        return None
    actions = plain.get("_multi")
    return (actions if isinstance(actions, list) else None) if by_action else [plain]


def flatten(plain: Any, prefix: str = "") -> dict[str, float] | None:
    """Return the features of an object by name, or None if one is no number.

    Parameters
    ----------
    plain : object
        The object as plain JSON.
    prefix : str, default ""
        The names of the objects around it, each followed by a dot.
    """
    if not isinstance(plain, dict):
        return None
    found: dict[str, float] = {}
    for name, value in plain.items():
        if _is_ignored(name, value):
            continue
        inner = _inner(value)
        if isinstance(inner, dict):
            part = flatten(inner, f"{prefix}{name}.")
            if part is None:
                return None
            found |= part
        elif _is_number(value):
            found[prefix + name] = float(value)
        elif isinstance(value, list) and all(map(_is_number, value)):
            found |= {f"{prefix}{name}[{i}]": float(one) for i, one in enumerate(value)}
        else:
            return None
    return found


def _is_ignored(name: str, value: Any) -> bool:
    if name == PERSONALIZER[0] and isinstance(value, dict) and set(value) == PERSONALIZER[1]:
        return True
    return name.startswith("_")


def _inner(value: Any) -> Any:
    """Return the object in a list of one, as Personalizer writes features."""
    is_single = isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
    return value[0] if is_single else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _typed(plain: dict[str, Any]) -> tuple[Any, Getter]:
    """Return the type of an object whose features are numbers, and the getter of the numbers."""
    fields: list[Any] = []
    names: dict[str, str] = {}
    getters: list[tuple[str, Getter]] = []
    for i, (name, value) in enumerate(plain.items()):
        if _is_ignored(name, value):
            key, kind, nothing = KNOWN.get(name, (f"f{i}", msgspec.Raw, NOTHING))
            fields.append((key, kind, nothing))
        else:
            key = f"f{i}"
            kind, get = _of_value(value)
            fields.append((key, kind))
            getters.append((key, get))
        names[key] = name
    kind = msgspec.defstruct(
        "Features", fields, rename=names, gc=False, kw_only=True, forbid_unknown_fields=True
    )

    def get_all(node: Any, out: list[float]) -> None:
        for key, get in getters:
            get(getattr(node, key), out)

    return kind, get_all


def _of_value(value: Any) -> tuple[Any, Getter]:
    inner = _inner(value)
    if isinstance(inner, dict):
        kind, get = _typed(inner)
        if inner is value:
            return kind, get
        return tuple[kind], lambda node, out: get(node[0], out)  # type: ignore[valid-type]
    if isinstance(value, list):
        return tuple[(float,) * len(value)], lambda node, out: out.extend(node)  # type: ignore[misc]
    return float, lambda node, out: out.append(node)
