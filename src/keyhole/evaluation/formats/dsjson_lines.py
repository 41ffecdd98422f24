"""Lines of dsjson, decoded: only the fields that an evaluation needs.

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 1, "_labelIndex": 0,
     "a": [1, 2], "p": [0.8, 0.2], "c": {..., "_multi": [{...}, {...}]}, "EventId": "..."}

`a` has the numbers of the actions, from 1, the chosen one first, and `p` their probabilities; cost
is the negative reward. Personalizer names actions by `_tag`.
"""

from __future__ import annotations

from typing import Annotated, Any

from keyhole.errors import FileError, MissingExtra, install_line
from keyhole.evaluation.formats.sources import Block

try:
    import msgspec
except ImportError as reason:  # pragma: no cover - tests have it
    raise MissingExtra(f"dsjson needs msgspec: {install_line('logs')}") from reason

# Personalizer allows 50 actions; numbers beyond this one would not fit into memory.
MAX_ACTIONS = 1_000_000
Number = Annotated[int, msgspec.Meta(ge=1, le=MAX_ACTIONS)]
Place = Annotated[int, msgspec.Meta(ge=0, lt=MAX_ACTIONS)]


class Action(msgspec.Struct, gc=False, rename={"tag": "_tag"}):
    """An action of a decision, by its name if it has one."""

    tag: str | None = None


class Context(msgspec.Struct, gc=False, rename={"actions": "_multi"}):
    """The context of a decision, of which features are read elsewhere."""

    actions: list[Action] | None = None


class Outcome(msgspec.Struct, gc=False, rename={"cost": "_label_cost", "a": "_a", "p": "_p"}):
    """The choice for a slot: `_a` counts from 0."""

    a: list[Place]
    p: list[float]
    cost: float | None = None


NAMES = {
    "cost": "_label_cost",
    "probability": "_label_probability",
    "action": "_label_Action",
    "index": "_labelIndex",
    "is_skipped": "_skipLearn",
    "is_deferred": "_deferred",
    "original": "_original_label_cost",
    "slots": "_outcomes",
    "continuous": "_label_ca",
    "event": "EventId",
}


NOTHING = msgspec.Raw()


class Line(msgspec.Struct, gc=False, rename=NAMES):
    """A line: a decision with its reward, or a reward whose decision is elsewhere."""

    cost: float | None = None
    probability: float | None = None
    action: Number | None = None
    index: Place | None = None
    a: list[Number] | None = None
    p: list[float] | None = None
    c: Any = None
    is_skipped: bool = False
    is_deferred: bool = False
    original: float | None = None
    pdrop: float = 0.0
    slots: list[Outcome] | None = None
    continuous: msgspec.Raw = NOTHING
    event: str | None = None

    @property
    def is_decision(self) -> bool:
        """Whether an action was chosen here; the reward of another event has none of these."""
        return not (
            self.a is None and self.action is None and self.index is None and self.slots is None
        )


def decoder(context: Any = Context) -> msgspec.json.Decoder[Line]:
    """Return the decoder of lines whose context is of a given type."""
    kind = msgspec.defstruct("Line", [("c", context | None, None)], bases=(Line,), gc=False)
    return msgspec.json.Decoder(kind)


def lines_of(block: Block) -> list[tuple[int, bytes]]:
    """Return the lines of a block that are not blank, with their places in it, from 0."""
    return [(i, line) for i, line in enumerate(block.data.split(b"\n")) if line.strip()]


def decode_all(block: Block, using: msgspec.json.Decoder[Line]) -> list[Line] | None:
    """Return the lines of a block at once; None if one is blank, or cannot be decoded.

    Parameters
    ----------
    block : Block
        The lines.
    using : msgspec.json.Decoder
        Their decoder.
    """
    try:
        found: list[Line] = using.decode_lines(block.data)
    except msgspec.MsgspecError:
        return None
    n = block.data.count(b"\n") + (not block.data.endswith(b"\n"))
    return found if len(found) == n else None


def decode_one(block: Block, place: int, line: bytes, using: msgspec.json.Decoder[Line]) -> Line:
    """Return a line, or raise an error that names it and its field.

    Parameters
    ----------
    block : Block
        The block of the line.
    place : int
        The place of the line in the block.
    line : bytes
        The line.
    using : msgspec.json.Decoder
        Its decoder.
    """
    try:
        return using.decode(line)
    except msgspec.MsgspecError as reason:
        raise FileError(f"{block.place(place)} is no line of dsjson: {reason}") from None


def plain_context(block: Block, place: int, line: bytes) -> Any:
    """Return the context of a line as plain JSON, or None if it has none.

    Parameters
    ----------
    block : Block
        The block of the line.
    place : int
        The place of the line in the block.
    line : bytes
        The line.
    """
    try:
        return msgspec.json.decode(line).get("c")
    except msgspec.MsgspecError as reason:  # fields that are not typed may have numbers too large
        raise FileError(f"{block.place(place)} is no line of dsjson: {reason}") from None
