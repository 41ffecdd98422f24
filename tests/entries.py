"""Public entry points, each with arguments that are right, for the fuzzer to spoil.

A call is made with fresh objects each time. `watched` is what an error must leave as it was.
"""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import keyhole as kh
from keyhole.files import read_arrays
from tests.bandits import bandit_of


class Call(NamedTuple):
    """A function with arguments that it takes, and what it might change."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    watched: Any = None


Entries = dict[str, Callable[[], Call]]

WORLD = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
RECIPE = kh.RandomLinearWorld(n_arms=2, context_dim=2, dim=2)
TABLE = kh.Dataset(features=np.random.default_rng(1).standard_normal((20, 3)), labels=[0, 1] * 10)
SHORT: dict[str, Any] = {"horizon": 3, "replications": 1, "seed": 1, "progress": False}


def policies() -> Entries:
    """Every policy; what they decide is in `bandits`."""
    common = {"sharing": "per-arm", "prior_precision": 1.0}
    own: dict[type[kh.Policy], dict[str, Any]] = {
        kh.ThompsonSampling: {"v": 1.0},
        kh.Greedy: {},
        kh.LinUCB: {"alpha": 1.0},
        kh.EpsilonGreedy: {"epsilon": 0.1},
        kh.Uniform: {},
        kh.OFUL: {"r": 1.0, "c_eta": 1.0, "delta": 0.1},
        kh.GreedyFirst: {"lambda_0": 0.1, "v": 1.0, "patience": 5},
    }
    return {
        kind.__name__: lambda kind=kind, settings=settings: Call(  # type: ignore[misc]
            lambda **given: kind(**given).resolve(1.0).plain_rule(), {**common, **settings}
        )
        for kind, settings in own.items()
    }


def worlds() -> Entries:
    """Every world and recipe: made, described, and some rounds of it."""

    def play(kind: Any) -> Callable[..., Any]:
        def made(**settings: Any) -> None:
            world = kind(**settings)
            world = world.draw(1) if hasattr(world, "draw") else world
            world.describe(), repr(world), world.sample(3, seed=1)

        return made

    linear = {
        "sensing": np.eye(2),
        "coefficients": np.ones((2, 2)),
        "context_covariance": 1.0,
        "sensing_covariance": np.eye(2),
        "reward_scale": 1.0,
        "shared_context": False,
        "context_distribution": "normal",
        "sensing_distribution": "normal",
        "reward_distribution": "normal",
    }
    random = {
        "n_arms": 2,
        "context_dim": 2,
        "dim": 2,
        "shared_parameter": False,
        "shared_context": True,
        "context_scale": 1.0,
        "sensing_scale": 1.0,
        "reward_scale": 1.0,
        "reward_distribution": "uniform",
    }
    missing = {"share": 0.3, "centre": 1.0}
    scales = {"sensing_scale": 0.1, "reward_scale": 1.0}
    lens = {"sensing": np.ones((2, 3)), "coefficients": np.ones((2, 3))}
    drawn = {"dim": 2, "rewards": "linear", "sensing": "bernoulli"}
    return {
        "LinearWorld": lambda: Call(play(kh.LinearWorld), dict(linear)),
        "LinearWorld.sample": lambda: Call(WORLD.sample, {"n": 3, "seed": 1}, WORLD),
        "RandomLinearWorld": lambda: Call(play(kh.RandomLinearWorld), dict(random)),
        "RandomLinearWorld.draw": lambda: Call(RECIPE.draw, {"seed": 1}),
        "MissingWorld": lambda: Call(play(kh.MissingWorld), {"world": WORLD, **missing}),
        "RandomMissingWorld": lambda: Call(
            play(kh.RandomMissingWorld), {"recipe": RECIPE, **missing}
        ),
        "DatasetWorld": lambda: Call(play(kh.DatasetWorld), {"data": TABLE, **lens, **scales}),
        "RandomDatasetWorld": lambda: Call(
            play(kh.RandomDatasetWorld), {"data": TABLE, **drawn, **scales}
        ),
        "Streams": lambda: Call(lambda seed: kh.Streams(seed)["x"].random(2), {"seed": 1}),
    }


class Given(kh.World):
    """A world of one's own with nothing checked in it: members and rounds as they are given."""

    def __init__(self, **members: Any) -> None:
        self.block = {name: members.pop(name) for name in ("observations", "rewards", "labels")}
        vars(self).update(members)

    def rounds(self, state: Any, n: int) -> kh.Rounds:  # noqa: ARG002
        known = np.zeros((n, 2))
        return kh.Rounds(values=known, latent=known, **self.block)


def simulation() -> Entries:
    """`simulate`, and worlds and policies of one's own in it."""
    own = {
        "n_arms": 2,
        "dim": 2,
        "eta": np.zeros((2, 2)),
        "noise_scale": 1.0,
        "shared_context": False,
        "observations": np.ones((3, 2, 2)),
        "rewards": np.ones((3, 2)),
        "labels": np.zeros(3, int),
    }
    settings = {
        "world": WORLD,
        "learners": kh.Greedy(),
        "horizon": 3,
        "replications": 1,
        "seed": 1,
        "checkpoints": [1, 2],
        "executor": None,
        "workers": 1,
    }

    def resumed(resume: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            inside = Path(folder) / resume if isinstance(resume, str) and resume else resume
            kh.simulate(WORLD, kh.Greedy(), **SHORT, resume=inside)

    return {
        "simulate": lambda: Call(kh.simulate, dict(settings)),
        "simulate(resume)": lambda: Call(resumed, {"resume": "kept"}),
        "World": lambda: Call(
            lambda **given: kh.simulate(Given(**given), kh.ThompsonSampling(v="oracle"), **SHORT),
            dict(own),
        ),
    }


def bandit(**settings: Any) -> kh.Bandit:
    """A bandit that has learned a little."""
    made = bandit_of(kh.ThompsonSampling(), arms=["A", "B"], dim=2, seed=1, **settings)
    for reward in (0.5, 1.0, -0.5):
        made.learn(made.choose([1.0, reward]), reward)
    return made


def posterior() -> kh.Posterior:
    """A posterior that has learned a little."""
    made = kh.Posterior(n_parameters=2, dim=2)
    made.learn_many(np.array([0, 1, 1]), np.eye(3, 2) + 0.5, np.array([1.0, 2.0, 3.0]))
    return made


def bandits() -> Entries:
    """`Bandit`, `Decision` and `Decisions`, plain and with all options."""
    found: Entries = {
        "Bandit": lambda: Call(
            kh.Bandit,
            {
                "learner": kh.Greedy(),
                "arms": 2,
                "dim": 2,
                "seed": 1,
                "probabilities": True,
            },
        ),
        "Learner": lambda: Call(
            kh.Learner,
            {
                "policy": kh.Greedy(),
                "intercept": True,
                "standardize": True,
                "missing": "predict",
                "clip": 5.0,
            },
        ),
        "Decision": lambda: Call(
            kh.Decision,
            {"arm": "A", "observation": [1.0, 2.0], "probability": 0.5, "score": 1.0},
        ),
        "Decision.from_dict": lambda: Call(
            lambda **record: kh.Decision.from_dict(record),
            kh.Decision(arm="A", observation=[1.0, 2.0], probability=0.5, score=1.0).to_dict(),
        ),
        "choice_probabilities": lambda: Call(
            kh.choice_probabilities,
            {"location": [0.0, 1.0], "scale": [1.0, 1.0], "epsilon": 0.1},
        ),
    }
    everything = {"intercept": True, "standardize": True, "missing": "predict"}
    for name, arguments in _bandit_methods({}).items():
        found[f"Bandit.{name}"] = arguments
    for name, arguments in _bandit_methods(everything).items():
        found[f"Bandit.{name}, with all options"] = arguments
    return found


def _bandit_methods(settings: dict[str, Any]) -> Entries:
    """The methods of a bandit with these settings."""
    y = [0.5, 1.0]
    arguments: dict[str, Callable[[kh.Bandit], dict[str, Any]]] = {
        "choose": lambda _: {"y": y, "among": ["B", "A"]},
        "choose_many": lambda _: {"y": [y, y], "among": None},
        "choice_probabilities": lambda _: {"y": y, "among": ["B"]},
        "learn": lambda made: {"decision": made.choose(y), "reward": 1.0},
        "learn_many": lambda made: {
            "decisions": made.choose_many([y, y]),
            "rewards": [1.0, 2.0],
        },
        "observe": lambda _: {"y": [y, y]},
        "merge": lambda _: {"other": bandit(**settings), "base": None},
        "add_arms": lambda _: {"arms": ["C"]},
        "remove_arms": lambda _: {"arms": ["B"]},
        "save": lambda _: {"target": "/dev/null/bandit.npz"},
    }

    def method(name: str) -> Callable[[], Call]:
        def make() -> Call:
            made = bandit(**settings)
            return Call(getattr(made, name), arguments[name](made), made)

        return make

    return {name: method(name) for name in arguments}


def posteriors() -> Entries:
    """`Posterior`."""
    y, rule = np.ones((1, 2)), kh.Rule(dispersion=1.0)
    arguments: dict[str, dict[str, Any]] = {
        "merge": {},
        "predict": {"parameter_of": np.array([0, 1]), "y": y},
        "scores": {"rule": rule, "parameter_of": np.array([0, 1]), "y": y},
        "explorations": {"rule": rule},
        "learn": {"parameter": 0, "y": np.ones(2), "reward": 1.0},
        "learn_many": {"parameters": np.array([0, 1]), "y": np.ones((2, 2)), "rewards": [1.0, 2.0]},
        "change_units": {"matrix": 2.0 * np.eye(2)},
        "move_rewards": {"by": 1.0},
        "extend": {"n": 1},
        "keep": {"parameters": [0, 1]},
    }

    def method(name: str) -> Callable[[], Call]:
        def make() -> Call:
            made = posterior()
            given = {"other": posterior(), "base": None} if name == "merge" else arguments[name]
            return Call(getattr(made, name), dict(given), made)

        return make

    return {
        "Posterior": lambda: Call(
            kh.Posterior, {"n_parameters": 2, "dim": 2, "prior_precision": 1.0}
        ),
        **{f"Posterior.{name}": method(name) for name in arguments},
    }


def theories() -> Entries:
    """`theory`: constants, and every bound."""
    names = ("delta", "p_min", "kappa", "margin", "lambda_m", "c_eta", "c_y", "r", "v", "longest")
    numbers: dict[str, Any] = {"n_arms": 3, "dim": 2, **dict.fromkeys(names, 0.5)}
    usual = {"c": kh.theory.Constants(**numbers), "horizon": 1000.0, "t": 1000.0, "n": 100.0}
    found: Entries = {
        "theory.instance": lambda: Call(
            kh.theory.instance, {"world": WORLD, "trials": 2000, "seed": 1}
        ),
        "theory.Constants": lambda: Call(kh.theory.Constants, numbers),
    }
    for name, one in kh.theory.STATEMENTS.items():
        found[f"bounds.{name}"] = lambda one=one: Call(  # type: ignore[misc]
            one.bound, {each: usual.get(each, 0.5) for each in ("c", *one.takes)}
        )
    return found


def laboratory() -> Entries:
    """`datasets`, `summary` and `plots`."""

    @cache
    def runs() -> Any:
        return kh.simulate(WORLD, [kh.Greedy(), kh.Uniform()], **{**SHORT, "replications": 3})

    def table(**given: Any) -> None:
        kh.Dataset(**given).prepared(clip=0.01)

    return {
        "Dataset": lambda: Call(
            table, {"features": np.eye(4), "labels": [0, 1, 0, 1], "name": "mine"}
        ),
        "Dataset.prepared": lambda: Call(TABLE.prepared, {"clip": 0.01}),
        "datasets.load": lambda: Call(
            kh.datasets.load, {"name": "wine", "data_dir": None, "label": None}
        ),
        "summary.summarize": lambda: Call(kh.summary.summarize, {"curves": runs().regret}),
        "summary.over_log_squared": lambda: Call(
            kh.summary.over_log_squared, {"regret": runs().regret}
        ),
        "summary.times_root": lambda: Call(kh.summary.times_root, {"error": runs().error}),
        "summary.rate_between": lambda: Call(kh.summary.rate_between, {"optimal": runs().optimal}),
        "plots.regret": lambda: Call(kh.plots.regret, {"runs": runs(), "axes": None}),
        "plots.normalized_regret": lambda: Call(
            kh.plots.normalized_regret, {"runs": runs(), "axes": None}
        ),
        "plots.estimation_error": lambda: Call(
            kh.plots.estimation_error, {"runs": runs(), "policy": "Greedy()", "axes": None}
        ),
        "plots.pulls": lambda: Call(
            kh.plots.pulls, {"runs": runs(), "policy": "Greedy()", "axes": None}
        ),
    }


TOLD: list[dict[str, Any]] = [
    {"age": 1.0 * k, "member": k % 2 == 0, "device": ("mobile", "tv")[k % 2]} for k in range(40)
]


def named(**options: Any) -> kh.Bandit:
    """A bandit that has learned from records, one of whose categories grows."""
    features = kh.Features(
        numbers=["age"], booleans=["member"], categories={"device": "grow"}, **options
    )
    made = kh.Bandit(kh.Learner(kh.ThompsonSampling(), features), arms=["A", "B"], seed=1)
    for record in TOLD:
        made.learn(made.choose(record), 1.0)
    return made


def of_arms() -> kh.Bandit:
    """A bandit whose arms have records."""
    features = kh.Features(
        numbers=["age"],
        arms=kh.Features(numbers=["price"], categories={"brand": "grow"}),
        standardize=False,
    )
    arms = {"A": {"price": 1.0, "brand": "x"}, "B": {"price": 2.0, "brand": "y"}}
    return kh.Bandit(kh.Learner(kh.ThompsonSampling(), features), arms=arms, seed=1)


class Doubled:
    """A fitted transformer."""

    n_features_in_ = 2

    def transform(self, rows: Any) -> Any:
        """Return the rows twice."""
        return np.hstack([rows, rows])


def records() -> Entries:
    """`Features`, `Transformed`, and bandits that choose by records."""
    new = {"age": 3.0, "device": "watch"}
    other = {"C": {"price": 3.0, "brand": "z"}}

    def record(**given: Any) -> Call:
        made = named(missing="zero", standardize=False)
        return Call(lambda **each: made.choose({**new, **each}), given, made)

    def method(make: Callable[[], kh.Bandit], name: str, **given: Any) -> Callable[[], Call]:
        def call() -> Call:
            made = make()
            arguments = {k: v(made) if callable(v) else v for k, v in given.items()}
            return Call(getattr(made, name), arguments, made)

        return call

    def transformed() -> kh.Bandit:
        learner = kh.Learner(kh.ThompsonSampling(), kh.Transformed(Doubled()))
        return kh.Bandit(learner, arms=["A", "B"], seed=1)

    return {
        "Features": lambda: Call(
            kh.Features,
            {
                "numbers": ["age"],
                "booleans": ["member"],
                "categories": {"device": ["mobile", "tv"]},
                "cross": [("age", "device")],
                "arms": kh.Features(numbers=["price"]),
                "intercept": True,
                "standardize": True,
                "missing": "predict",
                "clip": 5.0,
            },
        ),
        "Features.from_dict": lambda: Call(
            lambda **values: kh.Features.from_dict(values),
            kh.Features(numbers=["age"], categories={"device": "grow"}).to_dict(),
        ),
        "Features.from_frame": lambda: Call(kh.Features.from_frame, {"frame": TOLD}),
        "Transformed": lambda: Call(
            kh.Transformed,
            {
                "transformer": Doubled(),
                "intercept": True,
                "standardize": True,
                "missing": "predict",
                "clip": 5.0,
            },
        ),
        "Learner, with features": lambda: Call(
            kh.Learner, {"policy": kh.Greedy(), "features": kh.Features(numbers=["age"])}
        ),
        "Bandit, with records of arms": lambda: Call(
            kh.Bandit, {"learner": of_arms().learner, "arms": other, "dim": None, "seed": 1}
        ),
        "a record's values": lambda: record(age=1.0, member=True, device="watch"),
        "choose by a record": method(named, "choose", y=new, among=["A"]),
        "choose_many by records": method(named, "choose_many", y=[new, new], among=["A"]),
        "observe records": method(named, "observe", y=[new, new]),
        "choice_probabilities by a record": method(
            named, "choice_probabilities", y=new, among=["A", "B"]
        ),
        "Bandit.explain": method(
            named, "explain", decision=lambda made: made.choose(new), y=new, among=["A", "B"]
        ),
        "learn by levels": lambda: _learned_by_levels(),
        "choose by records of arms": method(of_arms, "choose", y={"age": 1.0}, among=["A", "B"]),
        "choose_many by records of arms": method(
            of_arms, "choose_many", y=[{"age": 1.0}], among=["A"]
        ),
        "add_arms with records": method(of_arms, "add_arms", arms=other),
        "choose by a transformer": method(transformed, "choose", y=[1.0, 2.0], among=["A"]),
        "choose_many by a transformer": method(transformed, "choose_many", y=[[1.0, 2.0]]),
        "load, with features": lambda: Call(
            kh.Bandit.load,
            {"source": transformed().to_bytes(), "features": kh.Transformed(Doubled())},
        ),
    }


def _learned_by_levels() -> Call:
    made = named()
    decision = kh.Decision.from_dict(made.choose({"age": 3.0, "device": "watch"}).to_dict())

    def learn(**fields: Any) -> None:
        made.learn(kh.Decision.from_dict({**decision.to_dict(), **fields}), 1.0)

    given = {"observation": decision.to_dict()["observation"], "levels": decision._grown}
    return Call(learn, given, made)


def evaluations() -> Entries:
    """Logs, and what is asked of them."""
    propensity = np.tile([0.5, 0.5], (60, 1))
    columns: dict[str, Any] = {
        "arms": ["A", "B"],
        "chosen": np.tile([0, 1], 30),
        "probability": propensity[:, 0],
        "reward": np.tile([0.0, 1.0], 30),
        "mean": np.zeros((60, 2)),
        "width": np.ones((60, 2)),
        "optimism": 0.0,
        "dispersion": 1.0,
        "epsilon": 0.1,
        "probabilities": propensity,
        "observation": np.ones((60, 2)),
        "sharing": "per-arm",
        "prior_precision": 1.0,
    }
    log = kh.evaluation.Logged(**columns)
    asked = {"log": log, "level": 0.9, "check": True}
    sequence = {**asked, "policy": "B", "bounds": (0.0, 1.0), "looks": [20, 60]}
    return {
        "Logged": lambda: Call(
            lambda **given: kh.evaluate(given, "uniform", min_size=0.0, check=False), columns
        ),
        "evaluate": lambda: Call(
            kh.evaluate,
            {
                **asked,
                "policies": kh.Greedy(),
                "estimator": "minvar",
                "threshold": 5.0,
                "shrinkage": 5.0,
                "min_size": 5.0,
            },
        ),
        "OnFeatures": lambda: Call(
            lambda **given: kh.evaluate(log, kh.evaluation.OnFeatures(**given)),
            {"policy": kh.Greedy(), "columns": [1]},
        ),
        "WithFloor": lambda: Call(
            lambda **given: kh.evaluate(log, kh.evaluation.WithFloor(**given)),
            {"policy": kh.Greedy(), "epsilon": 0.1},
        ),
        "FixedArm": lambda: Call(
            lambda arm: kh.evaluate(log, kh.evaluation.FixedArm(arm)), {"arm": "B"}
        ),
        "audit_log": lambda: Call(kh.evaluation.audit_log, {"log": columns}),
        "choose_v": lambda: Call(kh.evaluation.choose_v, {**asked, "values": [0.5, 1.0]}),
        "value_sequence": lambda: Call(kh.evaluation.value_sequence, {**sequence, "cap": 1.0}),
        "gain_sequence": lambda: Call(
            lambda margin, **given: kh.evaluation.gain_sequence(**given).advice(margin),
            {**sequence, "margin": 0.0},
        ),
    }


def everything() -> Entries:
    """All of them."""
    groups = (policies, worlds, simulation, bandits, records, posteriors, theories, laboratory)
    return {name: make for group in (*groups, evaluations) for name, make in group().items()}


# -- what must not change -------------------------------------------------------------------------


def snapshot(watched: Any) -> dict[str, np.ndarray]:
    """All that an object knows, in arrays that can be compared."""
    if isinstance(watched, kh.Bandit):
        with tempfile.TemporaryDirectory() as folder:
            watched.save(Path(folder) / "bandit.npz")
            return read_arrays(Path(folder) / "bandit.npz")
    if isinstance(watched, kh.Posterior):
        return {name: np.array(array) for name, array in watched.state._asdict().items()}
    return {"described": np.array(repr(watched))}
