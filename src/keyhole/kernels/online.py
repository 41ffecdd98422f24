"""Single decisions and rewards, with as little as can be between Python and the work.

A named tuple as an argument costs a compiled function 2 microseconds a call and its members one by
one a third of that, so these take `*rule, *state` and put the tuples together inside.
"""

from typing import Any

from keyhole.kernels.choosing import select
from keyhole.kernels.exploring import is_diverse
from keyhole.kernels.jit import loop
from keyhole.kernels.learning import absorb
from keyhole.kernels.types import Floats, Ints, Rule, State


@loop
def choose(
    owner: Ints,
    y: Floats,
    z: Floats,
    uniforms: Floats,
    prune: bool,
    law: Floats,
    w: Floats,
    optimism: float,
    dispersion: float,
    epsilon: float,
    learned: bool,
    radius: float,
    level: float,
    diversity: float,
    patience: float,
    *state: Any,
) -> tuple[int, int, float]:
    """The place of the chosen candidate; which row of w, (2, d), is its P y, or -1; and its n.

    law: (3, n) becomes location, scale and score of each, with pruning of those looked at.
    """
    rule = Rule(optimism, dispersion, epsilon, learned, radius, level, diversity, patience)
    known = State(*state)
    greedy = diversity > 0.0 and is_diverse(known, rule)
    place, kept = select(
        known, rule, owner, y, z, uniforms[0], uniforms[1], greedy, prune, law, w, None
    )
    return place, kept, known.n[owner[place]]


@loop
def learn(i: int, y: Floats, reward: float, w: Floats, n: float, *state: Any) -> None:
    """Learn one reward of parameter i at y. If it has n rewards still, w: (d,) is P y already."""
    known = State(*state)
    absorb(known, i, y, reward, w, known.n[i] == n)


@loop
def all_usable(values: Floats, largest: float) -> bool:
    """Whether no number is NaN, infinite or beyond `largest`."""
    usable = True
    for value in values.flat:
        usable = usable and bool(abs(value) <= largest)
    return usable


@loop
def all_finite(values: Floats) -> bool:
    """Whether no number is NaN or infinite: one of them would make the sum so."""
    total = 0.0
    for k in range(values.size):
        total += 0.0 * values[k]
    return total == 0.0
