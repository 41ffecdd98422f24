"""Reading of dsjson, block by block, into the columns of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from keyhole.core import Floats
from keyhole.errors import FileError
from keyhole.evaluation.formats.dsjson_columns import Arms, Part, check_events, columns_of
from keyhole.evaluation.formats.dsjson_features import Template, template_of
from keyhole.evaluation.formats.dsjson_lines import (
    Line,
    decode_all,
    decode_one,
    decoder,
    lines_of,
    plain_context,
)
from keyhole.evaluation.formats.dsjson_rounds import ROUNDING, Rounds, rounds_of
from keyhole.evaluation.formats.sources import Block

if TYPE_CHECKING:
    from keyhole.evaluation.formats.dsjson import Dsjson

PLAIN = decoder()


class Reader:
    """The rounds of one or more files.

    Parameters
    ----------
    settings : Dsjson
        The settings.
    """

    def __init__(self, settings: Dsjson) -> None:
        self.settings = settings
        self.n_rounds = self.n_inactive = self.n_rewards = 0
        self._arms = Arms(settings.arms)
        self._parts: list[Part] = []
        self._first: Rounds | None = None
        self._template: Template | None = None
        self._decoder = PLAIN
        self._is_open = settings.features  # whether features are still to be looked for

    @property
    def left_out(self) -> str:
        """What was left out, or an empty text."""
        said = [f"{self.n_inactive:,} events that were never activated"] * bool(self.n_inactive)
        said += [f"{self.n_rewards:,} rewards without their decision"] * bool(self.n_rewards)
        return " and ".join(said)

    def add(self, block: Block) -> None:
        """Take in a block of lines, or raise `FileError`."""
        places, lines, others = self._decoded(block)
        kept = [i for i, line in enumerate(lines) if self._is_round(block, places[i], line)]
        if not kept:
            return
        where = [places[i] for i in kept]
        chosen = [self._of_slot(block, places[i], lines[i]) for i in kept]
        rounds = rounds_of(block, where, chosen)
        self._check_same(block, where, rounds)
        part = Part(
            rounds=rounds._replace(tags=None),
            arm=self._arms.of(block, where, rounds),
            features=self._features([others.get(i, lines[i].c) for i in kept], rounds),
            path=block.path,
            line=block.first + np.array(where),
            event=np.array([hash(line.event) if line.event else 0 for line in chosen]),
        )
        self._parts.append(part)
        self.n_rounds += len(kept)

    def columns(self) -> dict[str, Any]:
        """Return the columns of all rounds that were taken in."""
        if not self.settings.repeated:
            check_events(self._parts)
        return columns_of(self._parts, self._arms.names(self._parts), self._template)

    # -- lines ------------------------------------------------------------------------------------

    def _decoded(self, block: Block) -> tuple[Any, list[Line], dict[int, Any]]:
        """Return places, lines, and plain contexts of lines that do not fit the template."""
        if self._is_open:
            self._look(block)
        at_once = decode_all(block, self._decoder)
        if at_once is not None:
            return range(len(at_once)), at_once, {}
        places: list[int] = []
        lines: list[Line] = []
        others: dict[int, Any] = {}
        for place, text in lines_of(block):
            try:
                line = self._decoder.decode(text)
            except msgspec.MsgspecError:
                # Either its features are others, or it is no line of dsjson.
                line = decode_one(block, place, text, PLAIN)
                if self._template is not None and line.c is not None:
                    others[len(lines)] = plain_context(block, place, text)
            places.append(place)
            lines.append(line)
        return places, lines, others

    def _look(self, block: Block) -> None:
        """Make a template of the features of the first line that is a decision."""
        for place, text in lines_of(block):
            line = decode_one(block, place, text, PLAIN)
            if line.is_decision and not (line.is_skipped or line.is_deferred):
                self._is_open = False
                self._template = template_of(plain_context(block, place, text))
                if self._template is not None:
                    self._decoder = decoder(self._template.kind)
                return

    def _is_round(self, block: Block, place: int, line: Line) -> bool:
        if line.is_skipped or line.is_deferred:
            self.n_inactive += 1
            return False
        if line.continuous:
            raise FileError(
                f"{block.place(place)}: _label_ca is an action on a scale, and arms are not"
            )
        if not line.is_decision:
            if line.cost is not None:
                raise FileError(
                    f"{block.place(place)}: a must be there, the numbers of the actions"
                )
            self.n_rewards += 1
            return False
        return True

    def _of_slot(self, block: Block, place: int, line: Line) -> Line:
        """Return the choice of the wanted slot as a line of its own."""
        slot, slots = self.settings.slot, line.slots
        if slots is None:
            if slot is None:
                return line
            raise FileError(f"{block.place(place)}: _outcomes must be there for slot {slot}")
        if slot is None:
            raise FileError(
                f"{block.place(place)}: _outcomes has choices for {len(slots)} slots: give one, "
                "format=Dsjson(slot=0)"
            )
        if slot >= len(slots) or not slots[slot].a:
            raise FileError(f"{block.place(place)}: _outcomes has no choice for slot {slot}")
        made = slots[slot]
        if made.cost is None:
            raise FileError(
                f"{block.place(place)}: _outcomes[{slot}] must have a _label_cost: a reward of all "
                "slots together is none of one choice"
            )
        numbers = [one + 1 for one in made.a]
        return Line(
            cost=made.cost, a=numbers, p=made.p, c=line.c, pdrop=line.pdrop, event=line.event
        )

    def _features(self, contexts: list[Any], rounds: Rounds) -> Floats | None:
        """Return the features of rounds, (n, d) or (entries, d); None if they are no vectors."""
        template = self._template
        if template is None:
            return None
        rows: list[list[list[float]]] = []
        for one in contexts:
            found = template.values_of(one) if isinstance(one, dict) else None
            if isinstance(one, template.kind):
                found = template.values(one)
            if found is None:
                # One line with others is enough: there is no observation, and no need to look.
                self._template, self._decoder = None, PLAIN
                return None
            rows.append(found)
        flat = np.array([row for one in rows for row in one])
        if not template.by_action:
            return flat
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        if (rounds.action > sizes[rounds.row]).any():
            self._template, self._decoder = None, PLAIN
            return None
        first = np.cumsum(sizes) - sizes
        found_rows: Floats = flat[first[rounds.row] + rounds.action - 1]
        return found_rows

    def _check_same(self, block: Block, where: list[int], rounds: Rounds) -> None:
        """Raise if lines are of another kind than the first ones."""
        first = self._first = self._first or rounds
        for field, one, other in (("p", first.p, rounds.p), ("_tag", first.tags, rounds.tags)):
            if (one is None) != (other is None):
                word = "must not be there, as in" if one is None else "must be there, as in"
                raise FileError(f"{block.place(where[0])}: {field} {word} the lines before")
        off = np.abs(rounds.kept - first.kept[0]) > ROUNDING
        if off.any():
            i = int(off.argmax())
            raise FileError(
                f"{block.place(where[i])}: the share of events that were kept must be "
                f"{first.kept[0]:g}, as in the first line, got {rounds.kept[i]:g} (pdrop, or "
                "_label_probability beside p): rows would count unequally"
            )
