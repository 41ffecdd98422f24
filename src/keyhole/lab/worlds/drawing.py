"""Functions that draw the rounds of a linear world in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from keyhole.core import Floats, Streams, kernels
from keyhole.core.kernels import NormalModel
from keyhole.lab.worlds.covariance import root
from keyhole.lab.worlds.distributions import draw_of
from keyhole.lab.worlds.products import product
from keyhole.lab.worlds.rounds import Rounds

if TYPE_CHECKING:
    from keyhole.lab.worlds.linear import LinearWorld


def normal_model(world: LinearWorld) -> NormalModel:
    """Return the matrices that draw the rounds of a world of normal contexts and sensing noise."""
    if not world.shared_context:
        # For fully observed directions, rounding can make the variance slightly negative.
        unseen = np.sqrt(np.diag(world.unseen_covariance).clip(min=0.0))[None, :]
    else:
        first, twin = world.distinct
        different = world.coefficients[first]
        # Draw as few normals as possible: context_dim, or one for each distinct parameter.
        if len(different) > world.context_dim:
            unseen = root(world.unseen_context) @ different.T
        else:
            unseen = root(different @ world.unseen_context @ different.T)
        unseen = unseen[:, twin]
    return NormalModel(
        observation=root(world.observation_covariance),
        eta=world.eta,
        unseen=np.ascontiguousarray(unseen),
        reward_scale=world.reward_scale,
    )


def normal_rounds(world: LinearWorld, n: int, source: Streams) -> Rounds:
    """Return rounds of a world of normal contexts and sensing noise: y, and then x'mu given y.

    The distribution equals that of x and then y given x, with at most half the random numbers.

    Parameters
    ----------
    world : LinearWorld
        The world.
    n : int
        The number of rounds.
    source : Streams
        The random streams by name.

    Returns
    -------
    Rounds
        The rounds.
    """
    per_arm = (n, world.n_arms)
    rows = 1 if world.shared_context else world.n_arms
    y = source.empty("y", (n, rows, world.dim))
    values, latent = source.empty("values", per_arm), source.empty("latent", per_arm)
    draw = draw_of("reward_distribution", world.reward_distribution)
    rewards = draw(source["reward"], source.empty("rewards", per_arm))
    context, hidden = source["context"].state, source["hidden"].state
    kernels.draw_rounds(context, hidden, world.normal_model, y, values, latent, rewards)
    return Rounds(y, rewards, values, latent)


def drawn_rounds(world: LinearWorld, n: int, source: Streams) -> Rounds:
    """Return rounds of any linear world, in the order of the model: x, then y = A x + xi.

    Parameters
    ----------
    world : LinearWorld
        The world.
    n : int
        The number of rounds.
    source : Streams
        The random streams by name.

    Returns
    -------
    Rounds
        The rounds.
    """
    rows = 1 if world.shared_context else world.n_arms
    context_root, sensing_root = world.roots
    draw_context = draw_of("context_distribution", world.context_distribution)
    draw_sensing = draw_of("sensing_distribution", world.sensing_distribution)
    draw_reward = draw_of("reward_distribution", world.reward_distribution)
    x = draw_context(source["context"], source.empty("x", (n, rows, world.context_dim)))
    x = product(x, context_root)
    noise = draw_sensing(source["sensing"], source.empty("noise", (n, rows, world.dim)))
    y = product(x, world.sensing.T) + product(noise, sensing_root)
    values, latent = products(world, y, world.eta), products(world, x, world.coefficients)
    rewards = draw_reward(source["reward"], source.empty("rewards", latent.shape))
    rewards *= world.reward_scale
    rewards += latent
    return Rounds(observations=y, rewards=rewards, values=values, latent=latent)


def products(world: LinearWorld, rows: Floats, coefficients: Floats) -> Floats:
    """Return the product of each arm's row with its parameter.

    Parameters
    ----------
    world : LinearWorld
        The world.
    rows : ndarray of shape (T, n_arms or 1, d)
        The rows.
    coefficients : ndarray of shape (n_arms, d)
        The parameter of each arm.

    Returns
    -------
    ndarray of shape (T, n_arms)
        The products.
    """
    if world.shared_context:
        first, twin = world.distinct
        return product(rows[:, 0], coefficients[first].T)[:, twin]
    result: Floats = np.einsum("tnd,nd->tn", rows, coefficients)
    return result
