"""`Plan`: the settings of a simulation, checked before any work starts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from keyhole import checks
from keyhole.core import (
    AnyLearner,
    Ints,
    Learner,
    Policy,
    Rule,
    Seed,
    SensorLearner,
    Streams,
    seed_sequence,
)
from keyhole.errors import InvalidValue, shown
from keyhole.lab.worlds import MEMBERS, World, identity

# Larger numbers are typing errors: no machine has the memory for them.
MAX_SIZE = 10**9
MAX_CHECKPOINTS = 10**7


@runtime_checkable
class WorldRecipe(Protocol):
    """A recipe from which each replication draws its own world."""

    @property
    def n_arms(self) -> int:
        """The number of arms in every world of the recipe."""

    @property
    def dim(self) -> int:
        """The length of an observation in every world of the recipe."""

    def draw(self, seed: Seed | Streams = None) -> World:
        """Draw one world."""

    def describe(self) -> dict[str, Any]:
        """Return the settings of the recipe, for the attributes of a result."""


# A learner, a policy, which stands for the plain learner with it, or any object that learns.
Playable: TypeAlias = Learner | Policy | AnyLearner
Learners: TypeAlias = Playable | Sequence[Playable] | Mapping[str, Playable]


@dataclass(frozen=True)
class Plan:
    """The settings of a simulation; with its number, they determine a replication."""

    world: World | WorldRecipe
    learners: dict[str, Learner | AnyLearner]
    horizon: int
    checkpoints: Ints
    seed: np.random.SeedSequence
    described: dict[str, str | int]
    rules: dict[str, Rule]  # of linear-Gaussian learners

    @classmethod
    def of(
        cls,
        world: World | WorldRecipe,
        learners: Learners,
        horizon: int,
        seed: Seed,
        checkpoints: int | Sequence[int] | None,
    ) -> Plan:
        """Return the plan of a simulation, with all settings checked.

        Parameters
        ----------
        world, learners, horizon, seed, checkpoints
            As in `simulate`.

        Raises
        ------
        InvalidValue
            If a setting cannot be used.
        """
        if isinstance(world, type) or not isinstance(world, World | WorldRecipe):
            raise InvalidValue(
                f"world must be a World such as LinearWorld.random(...), "
                f"or a recipe with n_arms, dim, draw(seed) and describe() such as "
                f"RandomLinearWorld(...), got {shown(world)}"
            )
        if isinstance(world, World):
            check_world(world, world)
        else:
            sizes_of(world)
        horizon = checks.integer("horizon", horizon)
        named, times = _named(learners), _checkpoints(checkpoints, horizon)
        start = seed_sequence(seed)
        rules = {
            name: _rule(learner.policy)
            for name, learner in named.items()
            if isinstance(learner, Learner)
        }
        return cls(
            world=world,
            learners=named,
            horizon=horizon,
            checkpoints=times,
            seed=start,
            described=_described(world, named, rules, horizon, times, start),
            rules=rules,
        )

    def check_rules(self) -> None:
        """Raise InvalidValue if the rule of a policy has changed since the start.

        A rule is evaluated once for each replication. A rule that depends on changing state would
        differ from one replication, thread or process to the next.
        """
        for name, rule in self.rules.items():
            policy = self.learners[name].policy.resolve(1.0)  # type: ignore[union-attr]
            if policy.rule != rule:  # a check of all its numbers takes ten times as long
                policy.plain_rule(rule)


def _rule(policy: Policy) -> Rule:
    """Return a policy's rule at noise scale 1: any scale distinguishes rules."""
    return policy.resolve(1.0).plain_rule()


def sizes_of(recipe: World | WorldRecipe) -> tuple[int, int]:
    """Check n_arms and dim of a world or a recipe, and return them."""
    kind = type(recipe).__name__
    return (
        checks.integer(f"{kind}.n_arms", recipe.n_arms, max_value=MAX_SIZE),
        checks.integer(f"{kind}.dim", recipe.dim, max_value=MAX_SIZE),
    )


def check_world(world: object, recipe: World | WorldRecipe) -> None:
    """Check the members of a world, and its sizes against those of its recipe.

    Parameters
    ----------
    world : object
        The world that was drawn.
    recipe : World or WorldRecipe
        The recipe it was drawn from; for a fixed world, the world itself.

    Raises
    ------
    InvalidValue
        If it is not a world, a member is missing or wrong, or the sizes differ.
    """
    kind = type(world).__name__
    if isinstance(world, World):
        for name in MEMBERS:
            if not hasattr(world, name):
                raise InvalidValue(
                    f"{kind} has no {name}: set it in the class, in __init__ or as a property"
                )
    sizes = sizes_of(recipe)
    if not isinstance(world, World) or sizes_of(world) != sizes:
        raise InvalidValue(
            f"{shown(recipe)} must draw Worlds of (n_arms, dim) {sizes}, got {shown(world)}"
        )
    if (shape := checks.floats(f"{kind}.eta", world.eta).shape) != sizes:
        raise InvalidValue(f"{kind}.eta must have shape {sizes}, got {shape}")
    checks.real(f"{kind}.noise_scale", world.noise_scale, min_value=0.0)
    checks.flag(f"{kind}.shared_context", world.shared_context)


def _described(
    world: World | WorldRecipe,
    learners: Mapping[str, Learner | AnyLearner],
    rules: Mapping[str, Rule],
    horizon: int,
    checkpoints: Ints,
    seed: np.random.SeedSequence,
) -> dict[str, str | int]:
    """Return the plan in plain types, for the attributes of a result and to compare plans."""
    recipes = {name: _learner_record(one, rules.get(name)) for name, one in learners.items()}
    return {
        "world": json.dumps(world.describe(), default=_plain),
        "policies": json.dumps(recipes, default=_plain),
        "horizon": horizon,
        "checkpoints": json.dumps(checkpoints.tolist()),
        "seed": json.dumps([seed.entropy, list(seed.spawn_key)], default=_plain),
    }


def _plain(value: object) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else repr(value)


def _learner_record(learner: Learner | AnyLearner, rule: Rule | None) -> dict[str, Any]:
    """Return the settings that identify a learner."""
    if isinstance(learner, SensorLearner):
        chosen = {"name": type(learner.policy).__name__, "settings": asdict(learner.policy)}
        # The code of a class of one's own; ours belongs to the version.
        own = {} if type(learner) is SensorLearner else {"code": identity(learner)["code"]}
        return {"name": type(learner).__name__, "policy": chosen, **learner.options, **own}
    if not isinstance(learner, Learner):
        return identity(learner)
    policy = learner.policy
    record = {"name": type(policy).__name__, "settings": asdict(policy), "rule": rule}
    return record if learner.is_plain else {**record, "options": learner.options}


def _named(learners: Learners) -> dict[str, Learner | AnyLearner]:
    """Return learners by their names in the result."""
    if isinstance(learners, Learner | Policy | AnyLearner):
        learners = [learners]
    if not isinstance(learners, Mapping | Sequence) or isinstance(learners, str):
        raise InvalidValue(
            "learners must be a Learner, a Policy, or a list or dict of them, "
            f"got {shown(learners)}"
        )
    if not isinstance(learners, Mapping):
        for learner in learners:
            _check_learner(learner)
        named = {_label(learner): learner for learner in learners}
        if len(named) < len(learners):
            raise InvalidValue(
                f"two learners are the same, got {', '.join(map(_label, learners))}: "
                "give a dict with a name for each"
            )
        learners = named
    if not learners:
        raise InvalidValue("learners must have at least one entry, got none")
    for name, learner in learners.items():
        _check_learner(learner)
        if not isinstance(name, str):
            raise InvalidValue(f"the name of a learner must be a string, got {shown(name)}")
    return {
        name: Learner(learner) if isinstance(learner, Policy) else learner
        for name, learner in learners.items()
    }


def _label(learner: object) -> str:
    """Return the name of a learner in results: its text, or the name of its class."""
    kind = type(learner)
    return kind.__name__ if kind.__repr__ is object.__repr__ else str(learner)


def _check_learner(learner: object) -> None:
    if isinstance(learner, type) or not isinstance(learner, Learner | Policy | AnyLearner):
        raise InvalidValue(
            "learners must be Policy or Learner objects, or have start, choose and learn, "
            f"got {shown(learner)}"
        )


def _checkpoints(given: int | Sequence[int] | None, horizon: int) -> Ints:
    """Return increasing numbers of rounds that end with the horizon.

    By default 100 are evenly spread over the horizon, and 50 more are spread evenly on a
    logarithmic axis.
    """
    if given is None:
        even = np.linspace(0, horizon, 101)[1:]
        early = np.geomspace(1, horizon, 50)
        wanted = np.concatenate([even, early]).round().clip(1, horizon)
    elif isinstance(given, Integral):
        count = min(checks.integer("checkpoints", given), horizon)
        checks.integer("checkpoints", count, max_value=MAX_CHECKPOINTS)
        wanted = np.linspace(0, horizon, count + 1)[1:].round()
    else:
        wanted = checks.floats("checkpoints", given)
        if wanted.ndim != 1 or (wanted != wanted.round()).any():
            raise InvalidValue(f"checkpoints must be whole numbers of rounds, got {shown(given)}")
    if wanted.size == 0 or wanted.min() < 1 or wanted.max() > horizon:
        raise InvalidValue(
            f"checkpoints must be numbers of rounds from 1 to {horizon}, got {shown(given)}"
        )
    times = np.unique(wanted.astype(np.int64))
    return times if times[-1] == horizon else np.append(times, horizon)
