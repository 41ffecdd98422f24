"""One replication: a world, its rounds in blocks, and every policy playing the same ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from keyhole import kernels, seeds
from keyhole.errors import InvalidValue
from keyhole.kernels import Ints, Record
from keyhole.policies import Policy
from keyhole.posterior import Posterior
from keyhole.simulation.plan import Plan
from keyhole.worlds import Rounds, World

# A block's observations take half a megabyte: small enough for the cache, and large enough that
# the calls between blocks do not count.
BLOCK_FLOATS = 2**16

# What is kept of a replication: of each policy at each checkpoint, and there of each arm.
Outcome = dict[str, NDArray[np.float64]]
Tick = Callable[[int], None]


class Player:
    """A policy with what it has learned and how it is doing."""

    def __init__(self, policy: Policy, world: World, checkpoints: Ints) -> None:
        policy = policy.told(world.noise_scale)
        if world.eta.shape != (world.n_arms, world.dim):
            raise InvalidValue(
                f"{type(world).__name__}.eta has shape {world.eta.shape}, "
                f"not {(world.n_arms, world.dim)}"
            )
        n, c = world.n_arms, checkpoints.size
        shared = policy.parameters == "shared"
        self.rule = policy.rule.plain()
        self.owner = np.zeros(n, np.int64) if shared else np.arange(n)
        self.posterior = Posterior(
            n_parameters=1 if shared else n, dim=world.dim, prior_precision=policy.prior_precision
        )
        self.record = Record(
            checkpoints=checkpoints,
            regret=np.zeros(c),
            latent_regret=np.zeros(c),
            optimal=np.zeros(c),
            pulls=np.zeros((c, n)),
            error=np.zeros((c, n)),
            sums=np.zeros(3),
            counts=np.zeros(n),
        )


def replicate(plan: Plan, number: int, tick: Tick | None = None) -> Outcome:
    """Play one replication. `tick` is told of the rounds as they are done, and may raise.

    All that is random follows from the plan's seed and the replication's number. Every policy
    sees the same rounds and is handed the same numbers to draw from, so that what one does
    depends neither on which others there are, nor on where or when it is done.
    """
    source = seeds.Streams(seeds.child(plan.seed, number), reuse=True)
    world = plan.world if isinstance(plan.world, World) else plan.world.draw(source)
    players = [Player(policy, world, plan.checkpoints) for policy in plan.policies.values()]
    size = max(16, min(4096, BLOCK_FLOATS // (world.n_arms * world.dim)))
    for start in range(0, plan.horizon, size):
        n = min(size, plan.horizon - start)
        rounds = _checked(world, world.rounds(n, source), n)
        z = source["policy"].standard_normal((n, world.n_arms))
        uniforms = source["coin"].random((n, 2))
        block = kernels.Block(rounds.observations, rounds.rewards, z, uniforms)
        for player in players:
            kernels.trial(
                player.posterior.state,
                player.rule,
                player.owner,
                block,
                rounds.values,
                rounds.latent,
                world.eta,
                start,
                player.record,
            )
        if tick is not None:
            tick(n)
    kept = ("regret", "latent_regret", "optimal", "pulls", "error")
    outcome = {name: np.stack([getattr(p.record, name) for p in players]) for name in kept}
    outcome["optimal"] = outcome["optimal"] / plan.checkpoints
    return outcome


def _checked(world: World, rounds: Rounds, n: int) -> Rounds:
    """The rounds as a kernel can take them: compiled code does not look where it reads."""
    per_arm, dim = (n, world.n_arms), world.dim
    names = [field.name for field in fields(Rounds)]
    plain = (np.ascontiguousarray(getattr(rounds, name), dtype=np.float64) for name in names)
    block = Rounds(*plain)
    if block.observations.shape not in ((*per_arm, dim), (n, 1, dim)):
        raise InvalidValue(
            f"{type(world).__name__}.rounds({n}) gave observations of shape "
            f"{block.observations.shape}, not {(*per_arm, dim)} or {(n, 1, dim)}"
        )
    for name in ("rewards", "values", "latent"):
        if (shape := getattr(block, name).shape) != per_arm:
            raise InvalidValue(
                f"{type(world).__name__}.rounds({n}) gave {name} of shape {shape}, not {per_arm}"
            )
    # One NaN or infinity in a block makes its sum one.
    if not np.isfinite(block.observations.sum() + block.rewards.sum() + block.values.sum()):
        raise InvalidValue(f"{type(world).__name__}.rounds({n}) gave numbers that are not finite")
    return block


def replicate_elsewhere(plan: Plan, number: int) -> Outcome:
    """`replicate` on an executor, which may be in another process or on another machine."""
    if os.getpid() != plan.process:
        limit_blas()
    return replicate(plan, number)


@cache
def limit_blas() -> None:
    """Keep this process's BLAS to one thread for good.

    Products of small matrices gain nothing from more, and with one they round alike everywhere.
    """
    threadpool_limits(limits=1, user_api="blas")
