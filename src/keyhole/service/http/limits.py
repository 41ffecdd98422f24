"""`Limits`: how much a client may send.

msgspec checks types while it decodes. The sizes of names and lists, and the nesting of values that
may be anything, are checked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keyhole.errors import InvalidValue, shown
from keyhole.service.requests import DecideRequest, check_id


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a client may send.

    Parameters
    ----------
    body : int, default 1 MiB
        Bytes of a request.
    batch : int, default 16 MiB
        Bytes of a batch, of observations, and of a model.
    batch_lines : int, default 10,000
        Lines of a batch.
    actions : int, default 1,000
        Candidates of a request.
    fields : int, default 1,000
        Fields of a context, or of a record of an action.
    depth : int, default 8
        Nesting of values.
    text : int, default 1,000
        Characters of a text, and of the name of a field.
    seconds : float, default 30
        How long a client may take to send a request, and to read an answer.
    log_rows : int, default 10,000
        Rows of one page of the log.
    """

    body: int = 1 << 20
    batch: int = 1 << 24
    batch_lines: int = 10_000
    actions: int = 1_000
    fields: int = 1_000
    depth: int = 8
    text: int = 1_000
    seconds: float = 30.0
    log_rows: int = 10_000

    def check_decide(self, request: DecideRequest) -> None:
        """Raise `InvalidValue` if a request is too large in some way."""
        self.check_record("context", request.context)
        if request.actions is not None:
            if len(request.actions) > self.actions:
                raise InvalidValue(
                    f"actions must be at most {self.actions}, got {len(request.actions)}"
                )
            for action in request.actions:
                check_id("actions: id", action.id)
                if action.features:
                    self.check_record("actions: features", action.features)
        if request.exclude and len(request.exclude) > self.actions:
            raise InvalidValue(
                f"exclude must be at most {self.actions}, got {len(request.exclude)}"
            )

    def check_record(self, name: str, record: Any) -> None:
        """Raise `InvalidValue` if a record has too many, too long or too deeply nested fields.

        Parameters
        ----------
        name : str
            Its name in messages.
        record : dict or list
            The record.
        """
        if len(record) > self.fields:
            raise InvalidValue(f"{name} must have at most {self.fields} fields, got {len(record)}")
        if record.__class__ is not dict:
            return  # numbers and null, by its type
        for field, value in record.items():
            kind = value.__class__
            if kind is float or kind is int or kind is bool or value is None:
                if len(field) <= self.text:
                    continue
            elif kind is str:
                if len(value) <= self.text and len(field) <= self.text:
                    continue
            elif len(field) <= self.text:
                self.check_value(f"{name}.{field}", value)
                continue
            raise InvalidValue(
                f"{name}: names and texts must have at most {self.text} characters, got "
                f"{shown(field)}: {shown(value)}"
            )

    def check_value(self, name: str, value: Any) -> None:
        """Raise `InvalidValue` if a value is nested too deeply, or has too many parts.

        Parameters
        ----------
        name : str
            Its name in messages.
        value : object
            A value of JSON.
        """
        level, total = [value], 0
        for _ in range(self.depth + 1):
            if not level:
                return
            total += len(level)
            largest = self.fields * self.depth
            if total > largest:
                raise InvalidValue(f"{name} must have at most {largest} parts, got {total} or more")
            level = [part for one in level for part in _parts(one)]
        raise InvalidValue(f"{name} must be nested at most {self.depth} deep, got more")


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []
