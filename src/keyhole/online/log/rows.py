"""The schema of a log: one kind of row for each event that changes a bandit, or is decided by it.

A row is a JSON object with the field `kind`, on a line of its own in a file:

    start       a bandit begins to write: all of it, as a file would hold it
    decision    an arm was chosen, with the inputs of its probability
    given       a decision that was made elsewhere, and whose reward comes next
    reward      the reward of a decision was learned
    counted     a reward that waited, or whose missing entries were predicted early, has its term
    context     the context of a decision became known after its reward
    observe     observations without a decision were seen
    levels      levels of growing categories got columns
    arms        arms were added or removed
    merge       what another bandit had learned was added
    amend       the reward of a decision was replaced
    forget      the reward of a decision was taken out again
    outcome     a reward came, and was not learned (yet)
    activate    a decision became active: from now on its rewards are waited for
    due         rewards of a decision are no longer waited for, and nothing was learned
    served      a baseline was answered, without a decision
    settings    the settings of a loop of the decision service

This module knows neither files nor bandits: `appending` and `log` keep rows in a file, and
`replaying` folds them into a bandit. A row that changes sums says by how much (`Term`), so that a
fold needs no other row to apply it. Rows that are about one event have the field `event`.

Rows are numbered from 1 without gaps (`seq`). The state of a bandit is a function of the rows
up to a number: that number is the version of its state. NaN is null: a missing entry.

score_i = mean_i + width_i (optimism_i + dispersion_i z_i), with probability 1 - epsilon; otherwise
an arm is picked uniformly. `mean` and `width` are those of every candidate, so that the exact
probability of any arm under any policy of this form follows from the row alone.
"""

from __future__ import annotations

from struct import pack
from typing import Any, TypeAlias

from keyhole.errors import MissingExtra, install_line

try:
    import msgspec
except ImportError as reason:  # pragma: no cover - tests have it
    raise MissingExtra(f"logs need msgspec: {install_line('logs')}") from reason

SCHEMA = 1
Name: TypeAlias = str | int
Numbers: TypeAlias = list[float | None]


class Term(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A reward as the sums have it, or as it waits.

    Parameters
    ----------
    arm : str or int
        The arm.
    value : float
        The reward as it counts.
    x : list of float, optional
        The row at which it was learned, in the columns of the sums at this row of the log. Of a
        bandit with sensors, the measurement, null where an entry is missing.
    weight : float, default 1.0
        Its weight.
    key : str, optional
        What it is found by, if it waits or is provisional.
    sensor : int, optional
        The place of the sensor.
    context : list of float, optional
        The context, if it is known.
    """

    arm: Name
    value: float
    x: Numbers | None = None
    weight: float = 1.0
    key: str | None = None
    sensor: int | None = None
    context: list[float] | None = None


class Row(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    tag=str.lower,
):
    """Base of all rows.

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
    policy: dict[str, Any]  # name and settings; of a learner of one's own, its name
    sharing: str | None  # that of the policy; None for a learner of one's own
    prior_precision: float | None
    bandit: str  # its file, compressed, in base 64
    resumed: bool = False  # it goes on from the rows before
    keyed: bool = False  # the draws of a choice are a keyed hash of the id of its event
    learner: str = "linear"  # "linear", "sensors" or "own"
    sensors: list[Name] | None = None  # the names of the sensors


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
    score : float or None
        Its score; None for a learner of one's own.
    y : list
        The observation, a row for all arms or one for each candidate; null if an entry is missing.
    mean, width, optimism, dispersion : list of float, optional
        Of each candidate; one number of `optimism` and `dispersion` if all have the same. A
        learner of one's own has none.
    epsilon : float, default 0
        The probability of a uniform pick.
    centred : list of float, optional
        The means from the zero of rewards, as they were compared, if no score is random and that
        zero is another number: in `mean`, which has it added, different means may be equal.
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
    place : int, optional
        The place of the chosen arm among the candidates, if each has a row of y.
    sensor : int, optional
        The place of the sensor that y is a measurement of, among those of the row `start`.
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
    score: float | None
    y: list[Numbers]
    mean: list[float] | None = None
    width: list[float] | None = None
    optimism: list[float] | None = None
    dispersion: list[float] | None = None
    epsilon: float = 0.0
    centred: list[float] | None = None
    arms: list[Name] | None = None
    x: list[float] | None = None
    predicted: list[int] | None = None
    filled: Numbers | None = None
    levels: int | None = None
    batch: tuple[int, int] | None = None
    place: int | None = None
    sensor: int | None = None
    request: str | None = None
    due: float | None = None
    deferred: bool = False
    served: Name | None = None

    @property
    def taken(self) -> Name:
        """The arm whose reward comes: the chosen one, or the one that was served instead."""
        return self.arm if self.served is None else self.served

    def own_row(self, arms: list[Name]) -> Numbers:
        """Return what was seen of the arm that was taken, of all arms that there were."""
        if len(self.y) == 1:
            return self.y[0]
        return self.y[(arms if self.arms is None else self.arms).index(self.taken)]

    def learned_at(self) -> dict[str, Any]:
        """Return the fields `taken` and `seen` of the row of its reward."""
        seen: Any = self.own_row(self.arms or [])
        return {"taken": self.taken, "seen": pack(f"<{len(seen)}d", *seen)}


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
    """The reward of a decision was learned, or waits until it can be.

    Parameters
    ----------
    event : str or None
        The id of the decision.
    value : float
        The reward.
    again : bool, default False
        Whether it is one more.
    batch : tuple of int, optional
        Place and size, for a reward of `learn_many`.
    x : list of float, optional
        The row at which it was learned, where units, predictions or a constant make it another one
        than the observation, unless it is the row of the decision.
    counted : float, optional
        The reward as it counted, if it was clipped.
    weight : float, optional
        Its weight, where the policy has weights.
    key : str, optional
        What it is found by while it waits or is provisional; a row `counted` then says how it
        counts.
    dropped : bool, default False
        Whether it was left out, since an entry was missing.
    context : list of float, optional
        The context, if it came with the reward.
    id, outcome : str and float, optional
        In the decision service, the id and the value of the reward that came; `value` is what all
        rewards of the event come to.
    ends : bool, default False
        Whether it was learned since the event was due.
    clipped : list of float, optional
        The context as it was learned, if it was clipped.
    taken, seen : str or int, and bytes, optional
        In the decision service, the arm and what was seen of it, as little-endian float64, in
        base 64 in JSON: a fold then needs no other row. They repeat the row of the decision.
    """

    event: str | None
    value: float
    again: bool = False
    batch: tuple[int, int] | None = None
    x: Numbers | None = None
    counted: float | None = None
    weight: float | None = None
    key: str | None = None
    dropped: bool = False
    context: list[float] | None = None
    id: str | None = None
    outcome: float | None = None
    ends: bool = False
    clipped: list[float] | None = None
    taken: Name | None = None
    seen: bytes | None = None


class Counted(Row, frozen=True, kw_only=True):
    """A reward that waited, or whose missing entries were predicted early, has its term."""

    event: str
    term: Term


class Context(Row, frozen=True, kw_only=True):
    """The context of a decision became known after its reward; `clipped` if it was clipped."""

    event: str
    context: list[float]
    clipped: list[float] | None = None


class Observe(Row, frozen=True, kw_only=True):
    """Observations without a decision were seen."""

    y: list[Numbers]


class Levels(Row, frozen=True, kw_only=True):
    """Levels of growing categories, (field, level), got columns, after those of rows before."""

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
    """The state of another bandit was added; both as files, compressed, in base 64."""

    other: str
    base: str | None = None


class Amend(Row, frozen=True, kw_only=True):
    """The reward of a decision was replaced; `term` is what the sums had of the old one."""

    event: str
    value: float
    term: Term | None = None
    id: str | None = None  # and, with it, the reward that came, as in `Reward`
    outcome: float | None = None


class Forget(Row, frozen=True, kw_only=True):
    """The rewards of a decision were taken out again; `terms` are what the sums had of them."""

    event: str
    terms: list[Term] = []


class Outcome(Row, frozen=True, kw_only=True):
    """A reward came, and changed nothing that is learned.

    It counts if it is held, or left the total as it was; one that is late or ignored never does.
    """

    event: str
    id: str
    value: float
    counts: bool = True


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

    @property
    def taken(self) -> Name:
        """The arm whose reward comes."""
        return self.arm


class Settings(Row, frozen=True, kw_only=True):
    """The settings of a loop, from here on."""

    loop: str  # its name
    settings: dict[str, Any]


AnyRow: TypeAlias = (
    Start
    | Decision
    | Given
    | Reward
    | Counted
    | Context
    | Observe
    | Levels
    | Arms
    | Merge
    | Amend
    | Forget
    | Outcome
    | Activate
    | Due
    | Served
    | Settings
)

# Rows of the decision service that tell of events, and change nothing that is learned.
OF_EVENTS = (Outcome, Activate, Due, Served, Settings)

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyRow)
_reward_decoder = msgspec.json.Decoder(Reward)
# Exceptions of decoding: msgspec checks the bytes of texts by Python's codec.
_DAMAGE = (msgspec.MsgspecError, UnicodeDecodeError)


def encoded(row: AnyRow) -> bytes:
    """Return a row as a line."""
    return _encoder.encode(row) + b"\n"


def decoded(line: bytes) -> AnyRow:
    """Return the row of a line; raise `DamagedRow` if it is none, or of another schema."""
    try:
        row: AnyRow = _decoder.decode(line)
    except _DAMAGE as reason:
        raise DamagedRow(_schema_of(line) or str(reason)) from None
    if isinstance(row, Start) and row.schema != SCHEMA:
        raise DamagedRow(_schema_of(line))
    return row


def decoded_rewards(lines: bytes) -> list[Reward]:
    """Return the rows of lines of rewards; raise `DamagedRow` if one is none."""
    try:
        found: list[Reward] = _reward_decoder.decode_lines(lines)
    except _DAMAGE as reason:
        raise DamagedRow(str(reason)) from None
    return found


class _Headed(msgspec.Struct):
    """What rows of every schema have."""

    kind: str
    schema: int = SCHEMA


_headed = msgspec.json.Decoder(_Headed)


def _schema_of(line: bytes) -> str:
    """Return what is wrong with the row of another schema; empty if it has none."""
    try:
        found = _headed.decode(line).schema
    except _DAMAGE:
        return ""
    ours = f"this Keyhole reads schema {SCHEMA} only"
    return "" if found == SCHEMA else f"it has schema {found}, and {ours}"


class DamagedRow(ValueError):
    """A line or record that is no row of this schema."""


def as_dict(row: AnyRow) -> dict[str, Any]:
    """Return the fields of a row."""
    return msgspec.structs.asdict(row)


def replaced(term: Term, **fields: Any) -> Term:
    """Return a term with some fields replaced.

    Parameters
    ----------
    term : Term
        The term.
    **fields
        The fields.
    """
    changed: Term = msgspec.structs.replace(term, **fields)
    return changed


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
    try:
        row: AnyRow = msgspec.convert(record, kind, strict=True)
    except msgspec.MsgspecError as reason:
        raise DamagedRow(str(reason)) from None
    return row
