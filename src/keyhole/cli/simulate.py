"""`keyhole simulate`: policies in a world, from flags or a TOML file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from keyhole.cli.console import as_json, clean, err, out
from keyhole.cli.data import DataDir, Json
from keyhole.errors import InvalidValue

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

EXAMPLES = """
Examples:

[bold]keyhole simulate[/]   Thompson sampling and Greedy, 5 arms, contexts of 20 observed as 10

[bold]keyhole simulate --arms 20 --policy thompson --policy linucb:alpha=2 --plot regret.png[/]

[bold]keyhole simulate --data wine --dim 6 --policy thompson:v=1.5[/]

[bold]keyhole simulate --config study.toml --out runs.nc[/]   where study.toml has, for example,

horizon = 5000

world = { n_arms = 5, context_dim = 20, dim = 10 }

policies = \\[{ kind = "thompson", v = 2.0 }, { kind = "greedy" }]

Policies: thompson (v), greedy, linucb (alpha), epsilon-greedy (epsilon), uniform, oful (r, c_eta,
delta), greedy-first (lambda_0, v, patience), weighted-thompson (epsilon, decay, v); each takes
sharing=shared and prior_precision.
"""


@clean
def simulate(
    arms: Annotated[int | None, typer.Option(min=1, help="Number of arms.  \\[default: 5]")] = None,
    context_dim: Annotated[
        int | None, typer.Option(min=1, help="Length of the hidden context.  \\[default: 20]")
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(min=1, help="Length of an observation.  \\[default: 10, or half the columns]"),
    ] = None,
    shared_parameter: Annotated[
        bool, typer.Option("--shared-parameter", help="Use one parameter for all arms.")
    ] = False,
    shared_context: Annotated[
        bool, typer.Option("--shared-context", help="Use one context for all arms.")
    ] = False,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Use one world for all replications.")
    ] = False,
    data: Annotated[
        str | None, typer.Option(help="Name of a data set, or a CSV file; each class is an arm.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column of labels in a CSV file.  \\[default: the last]")
    ] = None,
    rewards: Annotated[
        str | None,
        typer.Option(help="Rewards with --data: logistic or linear.  \\[default: logistic]"),
    ] = None,
    missing: Annotated[
        float | None, typer.Option(help="Share of entries missing at random.  \\[default: none]")
    ] = None,
    fill: Annotated[
        str | None,
        typer.Option(
            help="Filling with --missing: predict, mean, zero or drop.  \\[default: predict]"
        ),
    ] = None,
    intercept: Annotated[
        bool, typer.Option("--intercept", help="Fit a constant for each arm.")
    ] = False,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Scale each feature by its standard deviation.")
    ] = False,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Policy, such as thompson:v=2; repeat the option to compare several.  "
            "\\[default: thompson and greedy]"
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with the world and the policies, instead of flags."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Rounds per run.  \\[default: 2000]")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Number of replications.  \\[default: 20]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of all random numbers.  \\[default: 1]")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of threads.  \\[default: one for each core]")
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Write the runs to a netCDF file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw regret over time to a .png, .svg or .pdf file.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Folder for finished replications; the same command continues there."),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Simulate policies on the same rounds of a world, and print their regret."""
    from keyhole.cli import recipes
    from keyhole.lab.simulation import simulate as run

    for path in (out_file, plot):
        if path is not None and not path.resolve().parent.is_dir():
            raise InvalidValue(
                f"{path} cannot be written: create the folder {path.resolve().parent} first"
            )
    if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidValue(f"--plot must end in .png, .svg or .pdf, got {plot.name}")
    flags = {
        "n_arms": arms,
        "context_dim": context_dim,
        "dim": dim,
        "shared_parameter": shared_parameter or None,
        "shared_context": shared_context or None,
        "fixed": fixed or None,
        "data": data,
        "label": label,
        "rewards": rewards,
        "missing": missing,
        "fill": fill,
        "intercept": intercept or None,
        "standardize": standardize or None,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    recipe = recipes.from_flags(given, policy) if config is None else recipes.from_file(config)
    if config is not None and (given or policy):
        raise InvalidValue(
            "--config sets the world and the policies: give it without "
            + recipes.flags_of([*given, *(["policy"] if policy else [])])
        )
    sizes = {"horizon": horizon, "replications": replications, "seed": seed}
    settings = {**recipe.sizes, **{name: n for name, n in sizes.items() if n is not None}}
    runs = run(
        recipe.world(settings["seed"], data_dir),
        recipe.learners,
        horizon=settings["horizon"],
        replications=settings["replications"],
        seed=settings["seed"],
        workers=workers,
        resume=resume,
    )
    if out_file is not None:
        runs.to_netcdf(out_file, engine="h5netcdf")
    if plot is not None:
        _drawn(runs).savefig(plot, dpi=200)
    rows = summarized(runs)
    if json:
        as_json({"settings": settings, "policies": rows})
        return
    _show(rows, settings)
    for path in (out_file, plot):
        if path is not None:
            err().print(f"wrote {path}", soft_wrap=True)


def _drawn(runs: xr.Dataset) -> Figure:
    """Return the figure of the regret, with the predictions of theory where there are any."""
    from keyhole.lab import plots

    try:
        return plots.regret(runs, asymptote=True)
    except InvalidValue:  # no policy has an asymptote, or every replication has its own world
        return plots.regret(runs)


def summarized(runs: xr.Dataset) -> list[dict[str, Any]]:
    """Return the results of each policy at the end of the runs."""
    from keyhole.lab.summary import summarize

    final = summarize(runs.regret).isel(time=-1)
    rows = []
    for name in runs.policy.values:
        one, last = final.sel(policy=name), runs.sel(policy=name).isel(time=-1)
        row = {
            "policy": str(name),
            "regret": float(one["mean"]),
            "standard_error": float(one.standard_error),
            "worst": float(one.worst),
            "optimal": float(last.optimal.mean()),
            "latent_regret": float(last.latent_regret.mean()),
        }
        if "correct" in runs:
            row["correct"] = float(last.correct.mean())
            row["oracle_correct"] = float(runs.best_correct.isel(time=-1).mean())
        rows.append(row)
    return rows


def _show(rows: list[dict[str, Any]], sizes: dict[str, int]) -> None:
    table = Table(
        title=f"{sizes['replications']} replications of {sizes['horizon']:,} rounds, "
        f"seed {sizes['seed']}",
        title_justify="left",
    )
    table.add_column("policy")
    for name in ("mean regret", "worst", "optimal choices"):
        table.add_column(name, justify="right")
    answers = "correct" in rows[0]
    if answers:
        table.add_column("correct", justify="right")
    for row in rows:
        cells = [
            row["policy"],
            _with_error(row["regret"], row["standard_error"]),
            f"{row['worst']:,.1f}",
            f"{row['optimal']:.1%}",
        ]
        table.add_row(*cells, *([f"{row['correct']:.1%}"] if answers else []))
    if answers:
        table.caption = f"The regression oracle is correct in {rows[0]['oracle_correct']:.1%}."
    out().print(table)


def _with_error(mean: float, error: float) -> str:
    """Return the mean ± its standard error; a single replication has no standard error."""
    return f"{mean:,.1f}" + ("" if math.isnan(error) else f" ± {error:,.1f}")
