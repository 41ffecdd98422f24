"""What is to be simulated, checked before any work starts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from keyhole import checks, seeds
from keyhole.errors import InvalidValue
from keyhole.kernels import Ints
from keyhole.policies import Policy
from keyhole.worlds import World


@runtime_checkable
class WorldRecipe(Protocol):
    """What a world can be drawn from, anew for each replication."""

    @property
    def n_arms(self) -> int:
        """How many arms every world of it has."""

    @property
    def dim(self) -> int:
        """The length of an observation in every world of it."""

    def draw(self, seed: seeds.Seed | seeds.Streams = None) -> World:
        """One world."""

    def describe(self) -> dict[str, Any]:
        """What a result's attributes say of it."""


Policies: TypeAlias = Policy | Sequence[Policy] | Mapping[str, Policy]


@dataclass(frozen=True)
class Plan:
    """Everything that one replication follows from, besides its number."""

    world: World | WorldRecipe
    policies: dict[str, Policy]
    horizon: int
    checkpoints: Ints
    seed: np.random.SeedSequence
    described: dict[str, str | int]

    @classmethod
    def of(
        cls,
        world: World | WorldRecipe,
        policies: Policies,
        horizon: int,
        seed: seeds.Seed,
        checkpoints: int | Sequence[int] | None,
    ) -> Plan:
        """Check the settings of a simulation."""
        if not isinstance(world, World | WorldRecipe):
            raise InvalidValue(
                f"world must be a World such as LinearWorld.random(...), "
                f"or a recipe with n_arms, dim, draw(seed) and describe() such as "
                f"RandomLinearWorld(...), got {world!r}"
            )
        if isinstance(world, World):
            check_world(world, world)
        horizon = checks.whole("horizon", horizon)
        named, times = _named(policies), _checkpoints(checkpoints, horizon)
        start = seeds.root(seed)
        return cls(
            world=world,
            policies=named,
            horizon=horizon,
            checkpoints=times,
            seed=start,
            described=_described(world, named, horizon, times, start),
        )


def check_world(world: object, recipe: World | WorldRecipe) -> None:
    """What every world must be, whoever wrote it, and the sizes that its recipe promises."""
    kind, sizes = type(world).__name__, (recipe.n_arms, recipe.dim)
    if not isinstance(world, World) or (world.n_arms, world.dim) != sizes:
        raise InvalidValue(f"{recipe!r} must draw Worlds of (n_arms, dim) {sizes}, got {world!r}")
    if checks.floats(f"{kind}.eta", world.eta).shape != sizes:
        raise InvalidValue(f"{kind}.eta has shape {world.eta.shape}, not {sizes}")
    checks.number(f"{kind}.noise_scale", world.noise_scale, least=0.0)


def _described(
    world: World | WorldRecipe,
    policies: Mapping[str, Policy],
    horizon: int,
    checkpoints: Ints,
    seed: np.random.SeedSequence,
) -> dict[str, str | int]:
    """The plan in plain words, for the attributes of a result and to tell plans apart."""
    recipes = {
        name: {
            "name": type(policy).__name__,
            "settings": asdict(policy),
            "rule": policy.told(1.0).rule,
        }
        for name, policy in policies.items()
    }
    return {
        "world": json.dumps(world.describe(), default=_plain),
        "policies": json.dumps(recipes, default=_plain),
        "horizon": horizon,
        "checkpoints": json.dumps(checkpoints.tolist()),
        "seed": json.dumps([seed.entropy, list(seed.spawn_key)], default=_plain),
    }


def _plain(value: object) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else repr(value)


def _named(policies: Policies) -> dict[str, Policy]:
    """Policies by the names that the result will call them."""
    if isinstance(policies, Policy):
        policies = [policies]
    if not isinstance(policies, Mapping | Sequence) or isinstance(policies, str):
        raise InvalidValue(f"policies must be one, a list or a dict of them, got {policies!r}")
    if not isinstance(policies, Mapping):
        named = {str(policy): policy for policy in policies}
        if len(named) < len(policies):
            raise InvalidValue("two policies are the same; give a dict with a name for each")
        policies = named
    if not policies:
        raise InvalidValue("at least one policy is needed, got none")
    for name, policy in policies.items():
        if not isinstance(policy, Policy):
            raise InvalidValue(f"policies must be Policy objects, by name or not, got {policy!r}")
        if not isinstance(name, str):
            raise InvalidValue(f"a policy's name must be a text, got {name!r}")
        policy.told(1.0).plain_rule()
    return dict(policies)


def _checkpoints(given: int | Sequence[int] | None, horizon: int) -> Ints:
    """Numbers of rounds, rising, the last of them the horizon.

    By default 100 evenly spread over the horizon, and 50 more that are dense at the start, where
    a logarithmic axis looks.
    """
    if given is None:
        even = np.linspace(0, horizon, 101)[1:]
        early = np.geomspace(1, horizon, 50)
        wanted = np.concatenate([even, early]).round().clip(1, horizon)
    elif isinstance(given, Integral):
        count = min(checks.whole("checkpoints", given), horizon)
        wanted = np.linspace(0, horizon, count + 1)[1:].round()
    else:
        wanted = checks.floats("checkpoints", given)
        if wanted.ndim != 1 or (wanted != wanted.round()).any():
            raise InvalidValue(f"checkpoints must be whole numbers of rounds, got {given!r}")
    times = np.unique(wanted.astype(np.int64))
    if times.size == 0 or times[0] < 1 or times[-1] > horizon:
        raise InvalidValue(f"checkpoints must be numbers of rounds from 1 to {horizon}")
    return times if times[-1] == horizon else np.append(times, horizon)
