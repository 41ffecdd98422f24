"""`keyhole theory`: the constants of a world, what is promised of it, and how long that takes."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from rich.table import Table

from keyhole.cli.console import as_json, clean, err, out
from keyhole.cli.data import Json
from keyhole.cli.worlds import (
    Arms,
    Config,
    ContextDim,
    Delta,
    ObservationDim,
    Seed,
    linear_world,
)
from keyhole.errors import InvalidValue

EXAMPLES = """
Examples:

[bold]keyhole theory --arms 5 --context-dim 20 --observation-dim 10[/]   its constants and bounds

[bold]keyhole theory --error 0.1 --arm 2[/]   and when arm 2 is known to within 0.1

[bold]keyhole theory --config study.toml --horizon 100000 --delta 0.01 --json[/]
"""

# Where the planner's rate is measured.
ROUNDS, REPLICATIONS = 4000, 20


@clean
def theory(
    arms: Arms = None,
    context_dim: ContextDim = None,
    observation_dim: ObservationDim = None,
    config: Config = None,
    horizon: Annotated[int, typer.Option(min=2, help="Rounds that the bounds are for.")] = 10_000,
    delta: Delta = 0.05,
    v: Annotated[
        float | None, typer.Option(help="The dispersion of Thompson sampling.  [default: R]")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="Plan: rounds until an arm's error is below this.")
    ] = None,
    arm: Annotated[int, typer.Option(min=1, help="Plan: of which arm.")] = 1,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Print the constants of a world, and the bounds of the paper for it.

    The bounds are about rates: at sizes that can be simulated they are far above what happens.

    With --error, say how many rounds it takes to know an arm that well: by the bound, and by
    simulation.
    """
    from keyhole.theory import Promises, instance

    world = linear_world(arms, context_dim, observation_dim, config, seed)
    if arm > world.n_arms:
        raise InvalidValue(f"there is no arm {arm}: the world has {world.n_arms}")
    constants = instance(world)
    promises = Promises(constants, horizon=horizon, delta=delta, v=v)
    given: dict[str, Any] = {
        "horizon": horizon,
        "delta": delta,
        "v": promises.v,
        "constants": {name: vars(one) for name, one in constants.named.items()},
        "bounds": {name: vars(one) for name, one in promises.named.items()},
        "arms": [
            {name: vars(one) for name, one in promises.of_arm(i).items()}
            for i in range(world.n_arms)
        ],
    }
    if error is not None:
        given["plan"] = _plan(world, promises, arm, error, seed)
    if json:
        as_json(given)
        return
    _show(given)


def _plan(world: Any, promises: Any, arm: int, error: float, seed: int) -> dict[str, Any]:
    """When an arm is known to within a number: promised, and as it goes on average."""
    from keyhole.policies import ThompsonSampling
    from keyhole.simulation import simulate
    from keyhole.summary import times_root

    runs = simulate(
        world,
        # Without a finite R there is no bound, but a policy may still be told the true scale.
        ThompsonSampling(v=promises.v if math.isfinite(promises.v) else "told"),
        horizon=ROUNDS,
        replications=REPLICATIONS,
        seed=seed,
    )
    curves = times_root(runs.error.isel(policy=0, arm=arm - 1))
    late = curves.sel(time=curves.time > ROUNDS / 2).mean("time")
    rate = float(late.mean())
    return {
        "arm": arm,
        "error": error,
        "by_the_bound": promises.rounds_until(arm - 1, error),
        "by_simulation": max((rate / error) ** 2, 1.0),
        "rate": rate,
        "rate_error": float(late.std(ddof=1) / REPLICATIONS**0.5),
    }


def _show(given: dict[str, Any]) -> None:
    constants = Table("constant", "value", "± error", "label", "meaning", title="Constants",
                      title_justify="left")  # fmt: skip
    for name, one in given["constants"].items():
        error = "at least" if math.isnan(one["error"]) else "exact"
        error = f"{one['error']:.1g}" if one["error"] > 0.0 else error
        constants.add_row(name, f"{one['value']:.4g}", error, one["label"], one["meaning"])
    out().print(constants)
    title = (
        f"Bounds for {given['horizon']:,} rounds, with probability {1 - given['delta']:g}, "
        f"v = {given['v']:.3g}"
    )
    bounds = Table("bound", "value", "label", "meaning", title=title, title_justify="left")
    for name, one in given["bounds"].items():
        bounds.add_row(name, f"{one['value']:.3g}", one["label"], one["meaning"])
    out().print(bounds)
    heads = (f"{name}\n{one['label']}" for name, one in given["arms"][0].items())
    arms = Table("arm", *heads, title="Of each arm, in the last round, after p_i T / 4 pulls of it",
                 title_justify="left")  # fmt: skip
    for i, arm in enumerate(given["arms"], start=1):
        arms.add_row(str(i), *(f"{one['value']:.3g}" for one in arm.values()))
    out().print(arms)
    err().print("[dim]The bounds are about rates: far above what happens at any usual size.[/]")
    if "plan" in given:
        plan = given["plan"]
        spread = 2.0 * plan["rate_error"] / plan["rate"] * plan["by_simulation"]
        surely = "after {:.2g}" if math.isfinite(plan["by_the_bound"]) else "never"
        out().print(
            f"Arm {plan['arm']} is known to within {plan['error']:g}: as simulated on average "
            f"after {plan['by_simulation']:,.0f} ± {spread:,.0f} rounds (error x sqrt(t) = "
            f"{plan['rate']:.3g} ± {plan['rate_error']:.1g}, measured from round "
            f"{ROUNDS // 2:,} to {ROUNDS:,}); surely, by the bound, "
            f"{surely.format(plan['by_the_bound'])}.",
            soft_wrap=True,
        )
