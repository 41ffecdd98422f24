"""`LoggedOwnBandit`: a bandit of a learner of one's own that writes what it decides and learns.

The learner's state is not known, and no row holds it. It follows from the rows: they tell of every
call, and the calls are made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from keyhole.core import AnyLearner, Arm, Seed
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.files import Path
from keyhole.online import storage
from keyhole.online.bandit import Bandit
from keyhole.online.decision import Decision
from keyhole.online.log import Store, rows
from keyhole.online.log.packing import packed
from keyhole.online.log.terms import Learned
from keyhole.online.logged.fields import nulls
from keyhole.online.logged.writing import Writes
from keyhole.online.own import OwnBandit

FORMAT = "keyhole.own-bandit"


class LoggedOwnBandit(Writes, OwnBandit):
    """A bandit of a learner of one's own with a log; `Bandit(learner, log=...)` makes one.

    Parameters
    ----------
    learner, arms, dim, seed, probabilities
        As in `OwnBandit`.
    log : Store or path-like
        Where to write.
    """

    _unlogged = OwnBandit

    def __init__(
        self,
        learner: AnyLearner,
        *,
        arms: int | Iterable[Arm],
        dim: int,
        seed: Seed = None,
        probabilities: bool = True,
        log: Store | Path,
    ) -> None:
        OwnBandit.__init__(
            self, learner, arms=arms, dim=dim, seed=seed, probabilities=probabilities
        )
        self._begin_log(log)

    def start_fields(self) -> dict[str, Any]:
        """Return the fields of the first row that depend on the kind of bandit."""
        record = {
            "format": FORMAT,
            "version": storage.VERSION,
            "learner": shown(self._own),
            "arms": list(self.arms),
            "dim": self.dim,
            "probabilities": self._probabilities,
            "random": self._random.tolist(),
        }
        return {
            "policy": {"name": type(self._own).__qualname__},
            "sharing": None,
            "prior_precision": None,
            "bandit": packed(json.dumps(record).encode()),
            "learner": "own",
        }

    @classmethod
    def begun(cls, content: bytes, learner: AnyLearner | None) -> LoggedOwnBandit:
        """Return the bandit of the first row of a log, before it has done anything.

        Parameters
        ----------
        content : bytes
            What the row has of it.
        learner : AnyLearner or None
            The learner.
        """
        record, bandit = json.loads(content), object.__new__(cls)
        if record.get("format") != FORMAT or record.get("version") != storage.VERSION:
            raise FileError(f"its bandit is of another format: {shown(record.get('format'))}")
        if learner is None:
            raise InvalidValue(
                f"this log is of a learner of one's own, {record['learner']}, whose state follows "
                "from its calls: give the learner, Bandit.from_log(path, learner=...) or "
                "log.replay(learner=...)"
            )
        settings = {name: record[name] for name in ("arms", "dim", "probabilities")}
        OwnBandit.__init__(bandit, learner, **settings)
        bandit._random = storage.random_of(record["random"])
        return bandit

    def without_log(self) -> Bandit:
        """Return this bandit as one that writes nothing; it takes over all that was learned."""
        bandit = object.__new__(OwnBandit)
        kept = ("_own", "_arms", "_dim", "_state", "_counts", "_probabilities", "_columns")
        for name in (*kept, "_random", "_lineage", "_once"):
            setattr(bandit, name, getattr(self, name))
        bandit._share()
        return bandit

    # -- choosing and learning --------------------------------------------------------------------

    def choose(
        self, y: Any, *, among: Iterable[Arm] | None = None, sensor: object = None
    ) -> Decision:
        """Choose an arm, as `OwnBandit.choose`, and write it down.

        Parameters
        ----------
        y, among, sensor
            As in `OwnBandit.choose`.
        """
        with self._writing() as log:
            decision: Decision = self._whole(super().choose, y, among=among, sensor=sensor)
            seen = self._last_rows
            place = self.arms.index(decision.arm)
            decision._description = ()  # which tells that it is in the log
            log.append(
                rows.Decision,
                event=decision.id,
                round=self._lineage.decisions,
                version=log.seq,
                arm=decision.arm,
                probability=decision.probability,
                score=None,
                y=[nulls(row) for row in seen],
                place=place if len(seen) > 1 else None,
            )
        return decision

    def learn(
        self,
        decision: Decision | str,
        reward: float,
        *,
        again: bool = False,
        context: Any = None,
    ) -> None:
        """Learn the reward of a decision, as `OwnBandit.learn`, and write it down.

        Parameters
        ----------
        decision : Decision or str
            The decision, or its id, by which it is found in the log.
        reward, again, context
            As in `OwnBandit.learn`.
        """
        with self._writing() as log:
            found = self._found(decision)
            self._check_once(log, found.id, again)
            self._whole(super().learn, found, reward, again=again, context=context)
            self._write_given(log, [found])
            log.append(rows.Reward, event=found.id, value=float(reward), again=again)

    def _whole(self, call: Any, *arguments: Any, **options: Any) -> Any:
        """Make a call; if the learner itself raises, its state may be ahead of the log."""
        self._is_in_learner = False
        try:
            return call(*arguments, **options)
        except BaseException as reason:
            if self._is_in_learner and self._log is not None:
                self._log.give_up(
                    f"{type(self._own).__name__} raised {shown(reason)}, which may have left its "
                    "state half changed; Bandit.from_log goes on from what was written"
                )
            raise

    # -- what needs sums --------------------------------------------------------------------------

    def forget(self, event: str) -> NoReturn:
        """Refuse: a learner of one's own has no sums from which a term could be taken."""
        del event
        self._refuse("forget")

    def amend(self, event: str, reward: float) -> NoReturn:
        """Refuse, as `forget`.

        Parameters
        ----------
        event, reward
            As in `Bandit.amend`.
        """
        del event, reward
        self._refuse("amend")

    def _term(self, one: Learned) -> NoReturn:
        del one
        self._refuse("forget")

    def take_out(self, terms: Sequence[rows.Term]) -> None:
        """Refuse, as `forget`."""
        if terms:
            self._refuse("forget")
