"""The schema of a log: one kind of row for each event that changes a bandit, or is decided by it.

A row is a JSON object on a line of its own, with the field `kind`:

    start       a bandit begins to write: all of it, as a file would hold it
    decision    an arm was chosen, with what its probability follows from
    given       a decision that was made elsewhere, and whose reward comes next
    reward      the reward of a decision was learned
    observe     observations without a decision were seen
    levels      levels of growing categories got columns
    arms        arms were added or removed
    merge       what another bandit had learned was added
    forget      the reward of a decision was taken out again

Rows are numbered from 1 without gaps (`seq`). What a bandit has learned is a function of the rows
up to a number: that number is the version of its state. NaN is null: a missing entry.

score_i = mean_i + width_i (optimism_i + dispersion_i z_i), with probability 1 - epsilon; otherwise
an arm is picked uniformly. `mean` and `width` are those of every candidate, so that the exact
probability of any arm under any policy of this form follows from the row alone.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from keyhole.errors import MissingExtra, install_line

try:
    import msgspec
except ImportError as reason:  # pragma: no cover - tests have it
    raise MissingExtra(f"logs need msgspec: {install_line('logs')}") from reason

SCHEMA = 1
Name: TypeAlias = str | int
Numbers: TypeAlias = list[float | None]


class Row(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag=str.lower,
):
    """What every row has.

    Parameters
    ----------
    seq : int
        The number of the row, from 1.
    at : float
        Seconds since 1970, by the clock of the writer. Clocks stamp; `seq` orders.
    """

    seq: int
    at: float


class Start(Row, frozen=True, kw_only=True):
    """A bandit begins to write."""

    schema: int
    run: str  # the name of its run, with which the ids of its decisions begin
    arms: list[Name]
    policy: dict[str, Any]  # name and settings
    sharing: str
    prior_precision: float
    bandit: str  # its file, compressed, in base 64
    resumed: bool = False  # it goes on from the rows before


class Decision(Row, frozen=True, kw_only=True):
    """An arm was chosen.

    Parameters
    ----------
    event : str
        The id of the decision.
    round : int
        The number of the decision in its run.
    version : int
        The last row that the state had taken in when it decided.
    arm : str or int
        The chosen arm.
    probability : float or None
        The probability with which it was chosen.
    score : float
        Its score.
    y : list
        The observation, a row for all arms or one for each candidate; null if an entry is missing.
    mean, width, optimism, dispersion : list of float
        Of each candidate; one number of `optimism` and `dispersion` if all have the same.
    epsilon : float, default 0
        The probability of a uniform pick.
    arms : list, optional
        The candidates; all arms if it is not there.
    x : list of float, optional
        The chosen arm's row as the posterior saw it, if that is not `y` itself.
    predicted : list of int, optional
        The entries of the chosen arm's row that were missing and predicted.
    filled : list of float, optional
        The chosen arm's row with predictions, if there are any.
    levels : int, optional
        How many levels of growing categories had columns; `levels` rows have their names.
    batch : tuple of int, optional
        Place and size, for a decision of `choose_many`.
    """

    event: str
    round: int
    version: int
    arm: Name
    probability: float | None
    score: float
    y: list[Numbers]
    mean: list[float]
    width: list[float]
    optimism: list[float]
    dispersion: list[float]
    epsilon: float = 0.0
    arms: list[Name] | None = None
    x: list[float] | None = None
    predicted: list[int] | None = None
    filled: Numbers | None = None
    levels: int | None = None
    batch: tuple[int, int] | None = None

    def own_row(self, arms: list[Name]) -> Numbers:
        """Return what was seen of the chosen arm, of all arms that there were."""
        if len(self.y) == 1:
            return self.y[0]
        return self.y[(arms if self.arms is None else self.arms).index(self.arm)]


class Given(Row, frozen=True, kw_only=True):
    """A decision that was made elsewhere, as `Decision.to_dict` writes it down."""

    event: str | None
    decision: dict[str, Any]

    def own_row(self) -> Numbers:
        """Return what was seen of the arm; null where an entry was missing and predicted."""
        missing = set(self.decision.get("predicted", ()))
        seen = enumerate(self.decision["observation"])
        return [None if k in missing else x for k, x in seen]


class Reward(Row, frozen=True, kw_only=True):
    """The reward of a decision was learned; `again` if it was one more."""

    event: str | None
    value: float
    again: bool = False
    batch: tuple[int, int] | None = None


class Observe(Row, frozen=True, kw_only=True):
    """Observations without a decision were seen."""

    y: list[Numbers]


class Levels(Row, frozen=True, kw_only=True):
    """Levels of growing categories, (field, level), got columns."""

    grown: list[tuple[str, str]]


class Arms(Row, frozen=True, kw_only=True):
    """Arms were added, with or without records, or removed."""

    added: list[tuple[Name, dict[str, Any] | None]] = []
    removed: list[Name] = []

    def applied_to(self, arms: list[Name]) -> list[Name]:
        """Return the arms after this row, of those before it."""
        gone = set(self.removed)
        return [arm for arm in arms if arm not in gone] + [name for name, _ in self.added]


class Merge(Row, frozen=True, kw_only=True):
    """What another bandit had learned was added; both as files, compressed, in base 64."""

    other: str
    base: str | None = None


class Forget(Row, frozen=True, kw_only=True):
    """The reward of a decision was taken out again."""

    event: str


AnyRow: TypeAlias = Start | Decision | Given | Reward | Observe | Levels | Arms | Merge | Forget

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyRow)


def encoded(row: AnyRow) -> bytes:
    """Return a row as a line."""
    return _encoder.encode(row) + b"\n"


def decoded(line: bytes) -> AnyRow:
    """Return the row of a line; raise `msgspec.MsgspecError` if it is none."""
    row: AnyRow = _decoder.decode(line)
    return row


DamagedRow = msgspec.MsgspecError


def as_dict(row: AnyRow) -> dict[str, Any]:
    """Return the fields of a row."""
    return msgspec.structs.asdict(row)


def field_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of a kind of row."""
    return tuple(kind.__struct_fields__)


def converted(record: dict[str, Any], kind: Any) -> AnyRow:
    """Return a row from its fields; raise `DamagedRow` if one is not of the schema.

    Parameters
    ----------
    record : dict
        The fields.
    kind : type
        The kind of row.
    """
    row: AnyRow = msgspec.convert(record, kind, strict=True)
    return row
