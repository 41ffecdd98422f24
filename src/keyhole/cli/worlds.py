"""A linear world from flags or a TOML file, for the commands about one world."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keyhole.errors import InvalidValue

if TYPE_CHECKING:
    from keyhole.lab.worlds import LinearWorld

Arms = Annotated[int | None, typer.Option(min=1, help="Number of arms.  \\[default: 3]")]
ContextDim = Annotated[
    int | None, typer.Option(min=1, help="Length of the hidden context.  \\[default: 4]")
]
Dim = Annotated[int | None, typer.Option(min=1, help="Length of an observation.  \\[default: 4]")]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with a table \\[world], instead of flags.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
Delta = Annotated[float, typer.Option(help="Allowed probability of failure.")]


def linear_world(
    arms: int | None,
    context_dim: int | None,
    dim: int | None,
    config: Path | None,
    seed: int,
) -> LinearWorld:
    """Return one linear world, of these sizes or from a file.

    Parameters
    ----------
    arms : int or None
        Number of arms; by default 3.
    context_dim : int or None
        Length of the hidden context; by default 4.
    dim : int or None
        Length of an observation; by default 4.
    config : Path or None
        A TOML file with a table [world], instead of the sizes.
    seed : int
        Seed of the world.

    Returns
    -------
    LinearWorld
        The world.

    Raises
    ------
    InvalidValue
        If both a file and sizes are given, or the world is not linear.
    """
    from keyhole.cli import recipes
    from keyhole.lab.worlds import LinearWorld

    sizes = {"n_arms": arms, "context_dim": context_dim, "dim": dim}
    given = {name: size for name, size in sizes.items() if size is not None}
    if config is not None and given:
        raise InvalidValue(f"--config sets the world: give it without {recipes.flags_of(given)}")
    usual = {"n_arms": 3, "context_dim": 4, "dim": 4}
    described = {**usual, **given} if config is None else recipes.from_file(config).described
    world = recipes.Recipe({**described, "fixed": True}, {}, {}).world(seed, None)
    if not isinstance(world, LinearWorld):
        raise InvalidValue(f"the world must be a LinearWorld, got a {type(world).__name__}")
    return world
