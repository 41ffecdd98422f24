"""Drawing the rounds of a linear world, in bulk, by matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from keyhole.seeds import Streams
from keyhole.worlds.distributions import draw_of
from keyhole.worlds.rounds import Floats, Rounds

if TYPE_CHECKING:
    from keyhole.worlds.linear import LinearWorld


def normal_rounds(world: LinearWorld, n: int, source: Streams) -> Rounds:
    """Rounds of a world of normal contexts and sensing noise: y, and then x'mu given y.

    The distribution is that of x, and then y given x, with half the numbers or fewer to draw.
    """
    rows = 1 if world.shared_context else world.n_arms
    seen, y = (source.empty(name, (n, rows, world.dim)) for name in ("seen", "y"))
    source["context"].standard_normal(out=seen)
    transform(seen, world.roots.observation, out=y)
    values = products(world, y, world.eta, out=source.empty("values", (n, world.n_arms)))
    root = world.roots.unseen
    latent = source.empty("latent", (n, root.shape[1]))
    if world.shared_context:
        hidden = source["hidden"].standard_normal(out=source.empty("hidden", (n, len(root))))
        latent = of_arms(world, np.matmul(hidden, root, out=latent))
    else:
        source["hidden"].standard_normal(out=latent)
        latent *= root
    latent += values
    return rewarded(world, y, values, latent, source)


def drawn_rounds(world: LinearWorld, n: int, source: Streams) -> Rounds:
    """Rounds of any linear world, as the model is written: x, then y = A x + xi."""
    rows = 1 if world.shared_context else world.n_arms
    draw_context = draw_of("context_distribution", world.context_distribution)
    draw_sensing = draw_of("sensing_distribution", world.sensing_distribution)
    x = draw_context(source["context"], source.empty("x", (n, rows, world.context_dim)))
    x = transform(x, world.roots.context)
    noise = draw_sensing(source["sensing"], source.empty("noise", (n, rows, world.dim)))
    y = transform(x, world.sensing.T) + transform(noise, world.roots.sensing)
    values, latent = products(world, y, world.eta), products(world, x, world.parameters)
    return rewarded(world, y, values, latent, source)


def rewarded(
    world: LinearWorld, y: Floats, values: Floats, latent: Floats, source: Streams
) -> Rounds:
    """The rounds, with the reward's own noise added."""
    draw = draw_of("reward_distribution", world.reward_distribution)
    rewards = draw(source["reward"], source.empty("rewards", latent.shape))
    rewards *= world.reward_scale
    rewards += latent
    return Rounds(observations=y, rewards=rewards, values=values, latent=latent)


def transform(rows: Floats, matrix: Floats, out: Floats | None = None) -> Floats:
    """Every row times a matrix, as one product: (T, n, d) and (d, e) give (T, n, e)."""
    result = np.empty((*rows.shape[:2], matrix.shape[1])) if out is None else out
    np.matmul(rows.reshape(-1, len(matrix)), matrix, out=result.reshape(-1, matrix.shape[1]))
    return result


def products(
    world: LinearWorld, rows: Floats, parameters: Floats, out: Floats | None = None
) -> Floats:
    """Each arm's row times its parameter: (T, n_arms or 1, d) and (n_arms, d) give (T, n_arms)."""
    if world.shared_context:
        first = world.distinct[0]
        room = out if len(first) == world.n_arms else None
        return of_arms(world, np.matmul(rows[:, 0], parameters[first].T, out=room))
    result: Floats = np.einsum("tnd,nd->tn", rows, parameters, out=out)
    return result


def of_arms(world: LinearWorld, columns: Floats) -> Floats:
    """Of each different parameter's column, those of all arms."""
    first, twin = world.distinct
    return columns if len(first) == world.n_arms else columns[:, twin]
