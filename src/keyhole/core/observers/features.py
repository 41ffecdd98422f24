"""`Features`: a frozen recipe from records with names to columns of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias

from keyhole import checks
from keyhole.core.observers import proposal
from keyhole.core.observers.encoder import ARM, MOST_COLUMNS, MOST_LEVELS, Encoder
from keyhole.core.observers.observer import CLIP, Fill, Observer
from keyhole.core.observers.recipe import OPTIONS
from keyhole.errors import InvalidValue, shown

# How a category becomes columns: its levels, a number of hashed columns, or a column per level
# that is seen.
Category: TypeAlias = Sequence[str] | int | Literal["grow"]

# Most columns that a category is hashed into: a posterior takes 8 d^2 bytes per arm.
MOST_HASHED = 4_096


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Features:
    """A recipe from records to columns of numbers, with stable names.

    Columns are in the order numbers, booleans, categories, then the same of the arms. Of a category
    exactly one column is 1. A missing field, None, NaN, empty text and a level that was not listed
    are missing, and are predicted with `missing="predict"`.

    Parameters
    ----------
    numbers : sequence of str, default ()
        Fields of numbers.
    booleans : sequence of str, default ()
        Fields of truth values.
    categories : mapping, default {}
        For each field of text its levels; or the number of columns, at least 2, that its levels are
        hashed into; or "grow": a level that is seen for the first time gets a column of its own.
    cross : sequence of pairs of fields, default ()
        Pairs whose columns are multiplied. A number may be crossed with itself.
    arms : Features, optional
        The recipe of an arm's record. Its fields are called "arm.price" in names and in `cross`.
        It may be all: a choice is then made from an empty record, {}.
    intercept : bool, default True
        Fit a constant per arm.
    standardize : bool, default True
        Convert numbers to units of their own spread.
    missing : {"predict", "mean", "zero", "drop"} or None, default "predict"
        Replacement of missing entries, as for `Learner`.
    clip : float or None, default 10.0
        With `standardize`, the limit of numbers in their units, as for `Learner`.
    clip_rewards : bool, default True
        Whether the first 32 rewards have a limit, too, as for `Learner`.

    Examples
    --------
    >>> features = Features(numbers=["age"], categories={"device": ["mobile", "desktop"]})
    >>> features
    Features(numbers=['age'], categories={'device': ['mobile', 'desktop']})
    >>> print(features)
    field   kind      columns  levels
    age     number          1
    device  category        2  mobile, desktop
    """

    numbers: Sequence[str] = ()
    booleans: Sequence[str] = ()
    categories: Mapping[str, Category] = field(default_factory=dict)
    cross: Sequence[tuple[str, str]] = ()
    arms: Features | None = None
    intercept: bool = True
    standardize: bool = True
    missing: Fill | None = "predict"
    clip: float | None = CLIP
    clip_rewards: bool = True

    def __post_init__(self) -> None:
        observer = Observer(
            0,
            intercept=self.intercept,
            standardize=self.standardize,
            missing=self.missing,
            clip=self.clip,
            clip_rewards=self.clip_rewards,
        )
        values: dict[str, Any] = {
            **observer.options,  # checked, and plain
            "numbers": _names("numbers", self.numbers),
            "booleans": _names("booleans", self.booleans),
            "categories": MappingProxyType(_categories(self.categories)),
            "_proposal": None,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_fields()
        self._check_arms()
        object.__setattr__(self, "cross", self._checked_cross())
        self._check_size()

    # -- the columns ------------------------------------------------------------------------------

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields of a record, in order."""
        return (*self.numbers, *self.booleans, *self.categories)

    @property
    def frame_fields(self) -> tuple[str, ...]:
        """Names of the columns of a frame: the fields, and those of the arms."""
        arms = () if self.arms is None else self.arms.fields
        return (*self.fields, *(ARM + name for name in arms))

    @property
    def all_crosses(self) -> tuple[tuple[str, str], ...]:
        """Crossed fields, with those of the arms' own recipe."""
        arms = () if self.arms is None else self.arms.cross
        return (*self.cross, *((ARM + one, ARM + other) for one, other in arms))

    def kind(self, field: str) -> str:
        """Return the kind of a field, which may be one of the arms.

        It is "number", "boolean", "category", "hashed" or "growing".
        """
        if not isinstance(field, str) or field not in self.frame_fields:
            raise checks.unknown("a field", field, self.frame_fields)
        if self.arms is not None and field not in self.fields:
            return self.arms.kind(field.removeprefix(ARM))
        if field in self.numbers:
            return "number"
        if field in self.booleans:
            return "boolean"
        spec = self.categories[field]
        return "hashed" if isinstance(spec, int) else "growing" if spec == "grow" else "category"

    def category(self, field: str) -> Category:
        """Return the levels of a category, its number of hashed columns, or "grow"."""
        if self.kind(field) in ("number", "boolean"):
            raise InvalidValue(f"{field} must be a category, got a {self.kind(field)}")
        if self.arms is not None and field not in self.fields:
            return self.arms.category(field.removeprefix(ARM))
        return self.categories[field]

    def start(self) -> Encoder:
        """Return the encoder that has seen no level of a growing category."""
        return Encoder(self)

    # -- making and showing -----------------------------------------------------------------------

    @classmethod
    def from_frame(cls, frame: Any) -> Self:
        """Propose a recipe for a frame; `print` it to see fields, kinds and shares missing.

        Text of few levels is a category with levels in the order of their frequency, text of more
        is hashed. Text of which more than half is distinct, dates, mixed values and fields of one
        value are left out, with a note. Columns named "arm.price" describe arms.

        Parameters
        ----------
        frame : frame
            A pandas or polars DataFrame, a pyarrow Table, a structured array or a list of records.
        """
        proposed = proposal.propose(frame)
        parts, arms = proposed.options(""), proposed.options(ARM)
        if not any(parts.values()) and not any(arms.values()):
            raise InvalidValue(f"the frame has no column to learn from: {proposed.left_out}")
        features = cls(**parts, arms=Features(**arms) if any(arms.values()) else None)
        object.__setattr__(features, "_proposal", proposed)
        return features

    def show(self) -> str:
        """Return the recipe as a table: field, kind, number of columns, levels.

        A recipe of `from_frame` also shows the share of missing values, and what was left out.
        """
        return proposal.table(self, self._proposal)  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return self.show()

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe in plain values, ready for JSON.

        Categories are a list of pairs: their order is that of the columns, and JSON's objects have
        none.
        """
        return {
            "numbers": list(self.numbers),
            "booleans": list(self.booleans),
            "categories": [[name, _plain(spec)] for name, spec in self.categories.items()],
            "cross": [list(pair) for pair in self.cross],
            "arms": None if self.arms is None else self.arms.to_dict(),
            "intercept": self.intercept,
            "standardize": self.standardize,
            "missing": self.missing,
            "clip": self.clip,
            "clip_rewards": self.clip_rewards,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the recipe that `to_dict` was called on."""
        known = [one.name for one in fields(cls)]
        if not isinstance(values, Mapping) or set(values) != set(known):
            raise InvalidValue(f"values must have the keys {', '.join(known)}, got {shown(values)}")
        options = dict(values)
        try:
            pairs = [(name, spec) for name, spec in options["categories"]]
        except (TypeError, ValueError):
            raise InvalidValue(
                f"categories must be pairs of a field and its levels, "
                f"got {shown(options['categories'])}"
            ) from None
        for name, _ in pairs:
            _check_name("categories", name)
        _check_once([name for name, _ in pairs])
        options["categories"] = dict(pairs)
        if options["arms"] is not None:
            options["arms"] = Features.from_dict(options["arms"])
        return cls(**options)

    # The order of categories is that of the columns, and counts.
    @property
    def _key(self) -> tuple[Any, ...]:
        options = {one.name: getattr(self, one.name) for one in fields(self)}
        options["categories"] = tuple(self.categories.items())
        return tuple(options.values())

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Features) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        parts = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in ("numbers", "booleans", "cross"):
                value = list(value)
            elif one.name == "categories":
                value = {name: _plain(spec) for name, spec in value.items()}
            if value not in ([], {}) and value != one.default:
                parts.append(f"{one.name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    # -- checks -----------------------------------------------------------------------------------

    def _check_fields(self) -> None:
        if not self.fields and self.arms is None:
            raise InvalidValue(
                "a recipe needs a field: numbers=[...], booleans, categories or arms=Features(...)"
            )
        _check_once(self.fields)
        for name in self.categories:
            for other in self.fields:
                if other.startswith((f"{name}=", f"{name}#")):  # the names of its columns
                    raise InvalidValue(
                        f"{other!r} could be a column of the category {name!r}; rename the field"
                    )

    def _check_arms(self) -> None:
        if self.arms is None:
            return
        if not isinstance(self.arms, Features):
            raise InvalidValue(f"arms must be a Features, got {shown(self.arms)}")
        if self.arms.arms is not None:
            raise InvalidValue("arms must be a recipe without arms of its own")
        for one in fields(self):
            if one.name in OPTIONS and (getattr(self.arms, one.name) != one.default):
                raise InvalidValue(
                    f"{one.name} is set for the context and the arms together, "
                    "not in the recipe of the arms"
                )
        for name in self.fields:
            if name.startswith(ARM):
                raise InvalidValue(f"{name!r} is the name of a field of the arms; rename the field")

    def _check_size(self) -> None:
        """Raise if there are too many columns; those of growing categories count when they come."""
        widths = {name: self._n_columns(name) for name in self.frame_fields}
        parts = {f"{one}:{other}": widths[one] * widths[other] for one, other in self.all_crosses}
        total = sum(widths.values()) + sum(parts.values())
        if total > MOST_COLUMNS:
            largest, n = max({**widths, **parts}.items(), key=lambda pair: pair[1])
            raise InvalidValue(
                f"a recipe may have {MOST_COLUMNS:,} columns, crossed ones too, got {total:,}, of "
                f"which {largest} makes {n:,}: a posterior takes 8 d^2 bytes for each arm; hash "
                "categories into fewer columns, or leave out crosses"
            )

    def _n_columns(self, field: str) -> int:
        """Return how many columns a field has before any level was seen; a growing one will."""
        if self.kind(field) in ("number", "boolean", "growing"):
            return 1
        spec = self.category(field)
        return spec if isinstance(spec, int) else len(spec)

    def _checked_cross(self) -> tuple[tuple[str, str], ...]:
        if isinstance(self.cross, str) or not _is_ordered(self.cross):
            raise InvalidValue(f"cross must be a list of pairs of fields, got {shown(self.cross)}")
        pairs: list[tuple[str, str]] = []
        for pair in self.cross:
            is_pair = isinstance(pair, tuple | list) and len(pair) == 2
            if not is_pair or not all(isinstance(name, str) for name in pair):
                raise InvalidValue(f"cross must be pairs of fields, got {shown(pair)}")
            for name in pair:
                if name not in self.frame_fields:
                    raise checks.unknown("a field of cross", name, self.frame_fields)
            one, other = pair
            if one == other and self.kind(one) != "number":
                raise InvalidValue(
                    f"only a number can be crossed with itself, got {shown(one)}, "
                    f"a {self.kind(one)}"
                )
            pairs.append((one, other))
        arms = () if self.arms is None else self.arms.cross
        every = [*pairs, *((ARM + one, ARM + other) for one, other in arms)]
        for k, crossed in enumerate(every):
            if crossed in every[:k] or crossed[::-1] in every[:k]:
                raise InvalidValue(f"cross must name a pair once, got {shown(crossed)} twice")
        return tuple(pairs)


def _plain(spec: Category) -> Any:
    return spec if isinstance(spec, int | str) else list(spec)


def _is_ordered(given: object) -> bool:
    """Return whether a value lists others in an order, which a set does not."""
    return checks.is_listing(given) and not isinstance(given, set | frozenset)


def _names(option: str, given: Any) -> tuple[str, ...]:
    """Return the names of fields as a tuple."""
    if isinstance(given, str) or not _is_ordered(given):
        raise InvalidValue(f"{option} must be a list of names of fields, got {shown(given)}")
    names = tuple(given)
    for name in names:
        _check_name(option, name)
    return tuple(map(str, names))


def _categories(given: Any) -> dict[str, Any]:
    """Return how each category becomes columns, with levels as tuples."""
    if not isinstance(given, Mapping):
        raise InvalidValue(
            f"categories must be a dict from fields to their levels, got {shown(given)}"
        )
    checked: dict[str, Any] = {}
    for name, spec in given.items():
        _check_name("categories", name)
        checked[str(name)] = _category(name, spec)
    return checked


def _category(name: str, spec: Any) -> tuple[str, ...] | int | str:
    what = f"categories[{name!r}]"
    if isinstance(spec, str):
        if spec != "grow":
            raise InvalidValue(
                f'{what} must be a list of levels, a number of columns or "grow", got {shown(spec)}'
            )
        return "grow"
    if isinstance(spec, set | frozenset):
        raise InvalidValue(f"{what} must be a list of levels: a set has no order")
    if not checks.is_listing(spec):
        return checks.integer(what, spec, min_value=2, max_value=MOST_HASHED)
    levels = tuple(spec)
    if not levels:
        raise InvalidValue(f'{what} must have a level; if they are not known, "grow"')
    for level in levels:
        if not isinstance(level, str) or not level:
            raise InvalidValue(f"{what} must have levels of text, not empty, got {shown(level)}")
    if len(levels) > MOST_LEVELS:
        raise InvalidValue(
            f"{what} must have at most {MOST_LEVELS:,} levels, got {len(levels):,}; "
            f"hash it: categories={{{name!r}: 256}}"
        )
    if len(set(levels)) < len(levels):
        twice = next(level for k, level in enumerate(levels) if level in levels[:k])
        raise InvalidValue(f"{what} must have each level once, got {shown(twice)} twice")
    return tuple(map(str, levels))


def _check_name(option: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"{option} must have names of fields, not empty, got {shown(name)}")


def _check_once(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidValue(f"a field must be named once in a recipe, got {shown(name)} twice")
        seen.add(name)
