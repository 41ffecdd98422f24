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
    amend       the reward of a decision was replaced
    outcome     a reward came, and was not learned (yet)
    activate    a decision became active: from now on it is waited for its rewards
    due         rewards of a decision are no longer waited for, and nothing was learned
    served      a baseline was answered, without a decision
    settings    the settings of a loop of the decision service

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
    keyed: bool = False  # the draws of a choice are a keyed hash of the id of its event


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
    request : str, optional
        A digest of the request that it answers, of the decision service.
    due : float, optional
        When rewards are no longer waited for, in seconds since 1970.
    deferred : bool, default False
        Whether it is not active yet.
    served : str or int, optional
        The arm that was served in place of the chosen one, with certainty.
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
    request: str | None = None
    due: float | None = None
    deferred: bool = False
    served: Name | None = None


class Given(Row, frozen=True, kw_only=True):
    """A decision that was made elsewhere, as `Decision.to_dict` writes it down."""

    event: str | None
    decision: dict[str, Any]


class Reward(Row, frozen=True, kw_only=True):
    """The reward of a decision was learned; `again` if it was one more.

    In the decision service `id` and `outcome` are those of the reward that came, and `value` is
    what all rewards of the event come to. Without them it was learned when the event became active
    or, with `ends`, when it was due.
    """

    event: str | None
    value: float
    again: bool = False
    batch: tuple[int, int] | None = None
    id: str | None = None
    outcome: float | None = None
    ends: bool = False


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


class Amend(Row, frozen=True, kw_only=True):
    """The reward of a decision was replaced; `id` and `outcome` as in `Reward`."""

    event: str
    value: float
    id: str | None = None
    outcome: float | None = None


class Outcome(Row, frozen=True, kw_only=True):
    """A reward came, and was not learned: it is held, late, or its event is not active."""

    event: str
    id: str
    value: float


class Activate(Row, frozen=True, kw_only=True):
    """A decision became active."""

    event: str
    due: float | None = None


class Due(Row, frozen=True, kw_only=True):
    """Rewards of a decision are no longer waited for, and there was nothing to learn."""

    event: str


class Served(Row, frozen=True, kw_only=True):
    """A baseline was answered without a decision, by a loop that is off."""

    event: str
    arm: Name
    arms: list[Name]
    request: str


class Settings(Row, frozen=True, kw_only=True):
    """The settings of a loop, from here on."""

    settings: dict[str, Any]


AnyRow: TypeAlias = (
    Start
    | Decision
    | Given
    | Reward
    | Observe
    | Levels
    | Arms
    | Merge
    | Forget
    | Amend
    | Outcome
    | Activate
    | Due
    | Served
    | Settings
)

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
