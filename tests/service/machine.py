"""A state machine of clients: whatever they ask in whatever order, the contract holds."""

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from keyhole.errors import KeyholeError, KeyholeWarning
from keyhole.service import DecideRequest, LoopSettings, Service
from tests.service.clocks import Moved
from tests.service.contract import Contract, Refused
from tests.service.history import check

LEARNERS: list[dict[str, Any]] = [
    {"dim": 2},
    {"dim": 2, "policy": {"name": "LinUCB"}},
    {"dim": 2, "intercept": True, "standardize": True},
    {"dim": 2, "missing": "predict"},
    {"features": {"numbers": ["x"], "categories": {"c": "grow"}}},
    {"features": {"numbers": ["x"], "standardize": False, "intercept": False, "missing": "zero"}},
]
LEARNS = ["at_once", "at_end", "provisional"]
LATE = ["amend", "ignore"]
AGGREGATES = ["sum", "first", "last", "mean", "max", "min"]
MODES = ["online", "shadow", "off"]
NAMES = [f"e{k}" for k in range(4)]
CONTEXTS = [(1.0, "u"), (-0.5, "v"), (2.0, "w"), (0.0, "u")]

events = st.sampled_from(NAMES)
reward_settings = st.fixed_dictionaries(
    {
        "learn": st.sampled_from(LEARNS),
        "late": st.sampled_from(LATE),
        "aggregate": st.sampled_from(AGGREGATES),
        "wait": st.sampled_from([5.0, 20.0]),
        "default": st.sampled_from([None, 0.25, 0.25]),
    }
)


def ask(name: str, *given: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return asks of a kind: the name of a method, and its arguments."""
    return st.tuples(st.just(name), *given)


decides = ask(
    "decide",
    events,
    st.sampled_from([CONTEXTS[0]] * 3 + CONTEXTS[1:]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([None, None, None, ["B", "A"], ["A", "C"], ["D"]]),
)
rewards = ask(
    "reward",
    events,
    st.sampled_from(["", "a", "b"]),
    st.sampled_from([-1.0, 0.0, 0.25, 0.5, 3.0]),
)
times = ask("time_out", st.sampled_from([-30.0, 0.0, 4.0, 6.0, 21.0]))
rare = [
    ask("retry", events),
    ask("activate", events),
    ask("forget", events),
    ask(
        "change",
        reward_settings,
        st.sampled_from([*MODES, "online", "online"]),
        st.sampled_from([True, True, False]),
    ),
    ask("change_arms"),
    *(ask(name) for name in ("restart", "reload", "keep", "crash")),
]
# One strategy, and not a rule for each: of rules Hypothesis leaves out most in each run.
asks = st.one_of(*[decides] * 6, *[rewards] * 6, *[times] * 2, *rare)


def whole(value: Any) -> Any:
    """Return a number without a point if it needs none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Clients(RuleBasedStateMachine):
    """Clients of one loop, and the contract beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.lives = 0
        self.clock = Moved()
        self.service = self.opened(self.root / "0")

    def opened(self, folder: Path) -> Service:
        # Nothing loses power here: a sync would only take time.
        return Service(folder, now=self.clock, synchronous="OFF")

    @initialize(
        learner=st.sampled_from(LEARNERS),
        reward=reward_settings,
        mode=st.sampled_from(["online", "online", *MODES]),
        first=st.lists(decides, min_size=4, max_size=4),
    )
    def create(
        self,
        learner: dict[str, Any],
        reward: dict[str, Any],
        mode: str,
        first: list[tuple[Any, ...]],
    ) -> None:
        self.learner = learner
        settings = self.full(reward, mode, add_arms=True)
        with patch("keyhole.service.service.secrets.token_bytes", lambda n: bytes(range(n))):
            loop = self.service.create("home", settings)  # the same arms are chosen every time
        self.service.wait(loop.unit)
        self.contract = Contract(settings)
        for event, (_, _, *given) in zip(NAMES, first, strict=True):
            self.decide(event, *given)
        self.agree()

    def full(self, reward: dict[str, Any], mode: str, *, add_arms: bool) -> dict[str, Any]:
        """Return settings with every field, and the default reward that the learning mode takes."""
        always: dict[str, dict[str, Any]] = {
            "at_once": {"default": None, "wait": None, "late": None},
            "provisional": {"default": 0.25},
        }
        given = {
            **self.learner,
            "arms": ["A", "B"],
            "reward": {**reward, **always.get(reward["learn"], {})},
            "mode": mode,
            "add_arms": add_arms,
        }
        return LoopSettings.of(given).to_dict()

    @rule(many=st.lists(asks, min_size=4, max_size=8))
    def clients(self, many: list[tuple[Any, ...]]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeyholeWarning)  # of a reward that is far from others
            for name, *given in many:
                getattr(self, name)(*given)
                self.agree()

    # -- comparing --------------------------------------------------------------------------------

    def both(self, wanted: Any, asked: Any) -> Any:
        """Return what the contract and the service say; both may refuse, with the same error."""
        try:
            expected, error = wanted(), None
        except Refused as reason:
            expected, error = None, str(reason)
        try:
            found = asked()
        except KeyholeError as reason:
            if type(reason).__name__ != error:
                raise AssertionError(f"{reason!r} in place of {error}") from reason
            return None, None
        assert error is None, f"{found} in place of {error}"
        self.service.wait(self.service.loop("home").unit)
        return expected, found

    def agree(self) -> None:
        """Compare every event."""
        loop = self.service.loop("home")
        for name in NAMES:
            event, promise = loop.events.get(name), self.contract.events.get(name)
            assert (event is None) == (promise is None)
            if event is not None and promise is not None:
                found = (
                    *(int(event.state), event.due, event.learned, event.learns),
                    *(event.rewards, event.uncounted, event.arm),
                )
                wanted = (
                    *(promise.state, promise.due, promise.learned, promise.learns),
                    *(promise.rewards, promise.uncounted, promise.arm),
                )
                assert found == wanted, f"{name}: {found} in place of {wanted}"
        bandit = loop.bandit
        n = sum(bandit.counts.values()) + sum(bandit.waiting.values())
        assert n == self.contract.in_sums

    # -- what clients do --------------------------------------------------------------------------

    def decide(
        self, event: str, context: tuple[float, str], defer: bool, actions: list[str] | None
    ) -> None:
        number, level = context
        second = None if "missing" in self.learner and level == "w" else 1.0
        given: Any = [number, second] if "dim" in self.learner else {"x": number}
        if "categories" in self.learner.get("features", {}):
            given["c"] = level
        request = {"context": given, "event_id": event, "defer": defer}
        if actions is not None:
            request["actions"] = [{"id": name} for name in actions]
        self.ask(event, request)

    def ask(self, event: str, request: dict[str, Any]) -> None:
        expected, decided = self.both(
            lambda: self.contract.again(event, request),
            lambda: self.service.decide("home", msgspec.convert(request, DecideRequest)),
        )
        if decided is not None:
            answer = msgspec.to_builtins(decided.answer)
            assert decided.is_replay == (expected is not None)
            if expected is None:
                self.contract.decide(event, request, answer, self.clock())
            else:
                assert answer == expected

    def retry(self, event: str) -> None:
        """Ask again as another program would write it."""
        if event in self.contract.events:
            given = dict(reversed(self.contract.events[event].request.items()))
            context = given["context"]
            if isinstance(context, dict):
                context = dict(reversed([(name, whole(one)) for name, one in context.items()]))
            self.ask(event, {**given, "context": context, "at_least": 0})

    def reward(self, event: str, name: str, value: float) -> None:
        expected, found = self.both(
            lambda: self.contract.reward(event, value, name),
            lambda: self.service.loop("home").reward(event, value, name),
        )
        if found is not None:
            assert (found.status, found.total) == expected

    def activate(self, event: str) -> None:
        self.both(
            lambda: self.contract.activate(event, self.clock()),
            lambda: self.service.loop("home").activate(event),
        )

    def forget(self, event: str) -> None:
        self.both(
            lambda: self.contract.forget(event),
            lambda: self.service.loop("home").forget(event),
        )

    def time_out(self, seconds: float) -> None:
        self.clock.time += seconds
        assert self.service.tick() == self.contract.time_out(self.clock())
        self.service.wait(self.service.loop("home").unit)

    def change(self, reward: dict[str, Any], mode: str, add_arms: bool) -> None:
        settings = self.full(reward, mode, add_arms=add_arms)
        loop = self.service.create("home", settings)
        self.service.wait(loop.unit)
        # Settings list the arms; an arm that was removed is named again, and joins.
        self.contract.arms += [name for name in ("A", "B") if name not in self.contract.arms]
        self.contract.settings = settings

    def change_arms(self) -> None:
        """Remove an arm, or add it again: what was learned of it is gone."""
        loop, arms = self.service.loop("home"), self.contract.arms
        if "B" not in arms:
            loop.add_arms(["B"])
            arms.append("B")
        elif len(arms) > 1:
            loop.remove_arms(["B"])
            self.contract.remove("B")
            assert "B" not in loop.settings.arms
        self.service.wait(loop.unit)

    # -- what becomes of the process --------------------------------------------------------------

    def restart(self) -> None:
        self.service.close()
        self.service = self.opened(self.folder)

    def reload(self) -> None:
        self.service.recover()

    def keep(self) -> None:
        loop = self.service.loop("home")
        self.service.keep(loop)
        self.service.wait(loop.unit)

    def crash(self) -> None:
        """Go on from the files as they are, in a folder of their own."""
        before, self.lives = self.folder, self.lives + 1
        shutil.copytree(before, self.folder, ignore=shutil.ignore_patterns("*-shm", "lock"))
        self.service.close()
        self.service = self.opened(self.folder)

    @property
    def folder(self) -> Path:
        return self.root / str(self.lives)

    def teardown(self) -> None:
        try:
            if hasattr(self, "contract"):
                found = check(str(self.folder), service=self.service)["home"]
                learned = {name: one.learned for name, one in found.events.items()}
                assert learned == {name: one.learned for name, one in self.contract.events.items()}
        finally:
            self.service.close()
            shutil.rmtree(self.root)
