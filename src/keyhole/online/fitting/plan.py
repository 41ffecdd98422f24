"""What a fit takes from where, found out before any row is added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from keyhole.core import Arm, Learner
from keyhole.errors import InvalidValue
from keyhole.online import arguments
from keyhole.online.fitting import logs
from keyhole.online.fitting.arrays import lengths_of
from keyhole.online.fitting.columns import Columns, check_schema, columns_of
from keyhole.online.fitting.parts import batches, parts_of
from keyhole.online.fitting.sources import Source, sources_of
from keyhole.online.lineage import Past
from keyhole.online.log.learned import Summary


class Table(NamedTuple):
    """A source, and the columns that are read of it."""

    source: Source
    columns: Columns
    summary: Summary | None  # of a log


class Plan(NamedTuple):
    """What is fitted.

    Attributes
    ----------
    tables : list of Table
        The sources in their order.
    arms : list of arms
        The arms.
    gone : list of arms
        Arms that logs have rewards of, and that their bandits have no more.
    dim : int
        Length of an observation.
    pasts : dict of str to Past
        The runs that logs are of.
    names : tuple of str or None
        Names of the numbers of an observation, if all tables have the same.
    """

    tables: list[Table]
    arms: list[Arm]
    gone: list[Arm]
    dim: int
    pasts: dict[str, Past]
    names: tuple[str, ...] | None

    @property
    def logs(self) -> list[tuple[Source, Summary]]:
        """The sources that are logs, and their summaries."""
        return _logs(self.tables)

    @classmethod
    def of(cls, files: object, learner: Learner, arms: Any, columns: object, dim: Any) -> Plan:
        """Return the plan of a fit, or raise `InvalidValue`.

        Parameters
        ----------
        files, learner, arms, columns, dim
            As in `fit`.
        """
        named = columns_of(columns, learner)
        tables = []
        for source in sources_of(files):
            summary = logs.summary_of(source)
            if summary is not None:
                logs.check_learner(source, summary, learner)
            tables.append(Table(source, named if summary is None else logs.COLUMNS, summary))
        names, gone = _arms(arms, tables)
        pasts = logs.pasts_of(_logs(tables))
        length = _length(tables, learner, dim)
        fields = None
        if learner.features is None and len(_logs(tables)) < len(tables):
            fields = None if isinstance(named.observation, str) else named.observation
        return cls(tables, names, gone, length, pasts, fields)


def _logs(tables: Sequence[Table]) -> list[tuple[Source, Summary]]:
    return [(one.source, one.summary) for one in tables if one.summary is not None]


def _arms(given: Any, tables: Sequence[Table]) -> tuple[list[Arm], list[Arm]]:
    if given is not None:
        names: Any = arguments.arm_names(given)
        return list(names), []
    summaries = [summary for _, summary in _logs(tables)]
    if len(summaries) < len(tables):
        raise InvalidValue(
            "arms must be given, the names in the column of arms: only a log tells which there are"
        )
    return logs.arms_of(summaries)


def _length(tables: Sequence[Table], learner: Learner, given: int | None) -> int:
    """Return the length of an observation; raise if that of a source is another one."""
    is_encoded = learner.features is not None
    wanted = given
    if learner.features is not None:
        wanted = learner.features.start().dim
        if given not in (None, wanted):
            raise InvalidValue(
                f"dim must be {wanted}, the number of columns of the features, got {given}"
            )
    for one in tables:
        if one.summary is not None:
            length = one.summary.dim
        else:
            length = check_schema(one.source, one.columns, is_encoded=is_encoded)
            if length is None and not is_encoded:
                length = _first_length(one)
        if length is not None and wanted is not None and length != wanted:
            raise InvalidValue(
                f"observations of {one.source.name} must have {wanted} numbers, got {length}"
            )
        wanted = wanted if length is None else length
    if wanted is None:
        raise InvalidValue(
            "dim must be given, the length of an observation: no row of these files has a reward"
        )
    return wanted


def _batches(table: Table) -> Iterator[Any]:
    for part in parts_of(table.source, 1, is_remote=False):
        for _, batch in batches(part, table.columns.names, ()):
            yield batch


def _first_length(table: Table) -> int | None:
    """Return the length of the first list that has a reward."""
    assert isinstance(table.columns.observation, str)
    for batch in _batches(table):
        lengths = lengths_of(batch.column(table.columns.observation))
        lengths = lengths[batch.column(table.columns.reward).is_valid().to_numpy(False)]
        if (lengths >= 0).any():
            return int(lengths[lengths >= 0][0])
    return None
