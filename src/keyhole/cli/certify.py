"""`keyhole certify`: a bound on regret that is proved step by step, beside simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keyhole.cli.console import as_json, clean, err, out
from keyhole.cli.data import Json
from keyhole.cli.worlds import Arms, Config, ContextDim, Delta, Dim, Seed, linear_world
from keyhole.errors import InvalidValue

if TYPE_CHECKING:
    from keyhole.core import Policy
    from keyhole.lab.audit import Check
    from keyhole.lab.worlds import LinearWorld
    from keyhole.theory import Certificate

EXAMPLES = """
Examples:

[bold]keyhole certify[/]   Thompson sampling with v = R, 3 arms, 10,000 rounds

[bold]keyhole certify --policy greedy --check 1000 --plot certificate.png[/]   beside 1,000 runs

[bold]keyhole certify --arms 20 --horizon 100000 --hybrid 30000[/]   the first rounds by simulation

[bold]keyhole certify --config study.toml --latex[/]   the proof as a LaTeX table
"""

# Seeds of the burn-in and of the check, spawned from the seed of the command.
BURN_IN, CHECK = 101, 102


@clean
def certify(
    arms: Arms = None,
    context_dim: ContextDim = None,
    dim: Dim = None,
    config: Config = None,
    policy: Annotated[
        str, typer.Option(help="Policy: thompson, thompson:v=2 or greedy.")
    ] = "thompson",
    horizon: Annotated[int, typer.Option(min=2, help="Number of rounds.")] = 10_000,
    delta: Delta = 0.05,
    hybrid: Annotated[
        int | None,
        typer.Option(
            min=1, help="Rounds of a burn-in that is measured by simulation.  \\[default: none]"
        ),
    ] = None,
    check: Annotated[
        int | None,
        typer.Option(min=1, help="Simulate this many runs beside it.  \\[default: none]"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the bounds to a .png, .svg or .pdf file.")
    ] = None,
    seed: Seed = 1,
    latex: Annotated[bool, typer.Option("--latex", help="Print the proof as LaTeX.")] = False,
    json: Json = False,
) -> None:
    """Print a bound on the regret of a policy in a world, with its proof.

    With probability 1 - delta the regret is at most the certificate. The trivial bound beside it is
    what no policy exceeds with that probability. Contexts must be normal; with a shared context
    --hybrid is needed, and with many arms it gives a smaller bound.

    The exit code is 1 if more of the runs of --check exceed the certificate than delta allows.
    """
    from keyhole.theory import certificate

    if latex and json:
        raise InvalidValue("--latex and --json cannot be given together")
    _check_file(plot)
    world = linear_world(arms, context_dim, dim, config, seed)
    chosen = _policy(policy)
    first = None
    if world.shared_context and hybrid is None:
        raise InvalidValue(
            "with a shared context there is no certificate without a burn-in: give --hybrid ROUNDS"
        )
    if hybrid is not None:
        from keyhole.lab.audit import burn_in

        if hybrid >= horizon:
            raise InvalidValue(f"--hybrid must be below the horizon {horizon:,}, got {hybrid:,}")
        first = burn_in(
            world, chosen, rounds=hybrid, delta=delta, seed=_seed(seed, BURN_IN), progress=None
        )
    found = certificate(world, chosen, horizon, delta, burn_in=first)
    checked = _checked(world, chosen, found, check, seed)
    if plot is not None:
        _draw(world, found, checked, plot, delta)
    _show(found, checked, latex, json)
    if plot is not None:
        err().print(f"wrote {plot}", soft_wrap=True)
    if checked is not None and not _as_proved(checked):
        raise typer.Exit(1)


def _policy(text: str) -> Policy:
    from keyhole.cli import recipes
    from keyhole.core import Policy

    (made,) = recipes.from_flags({}, [text]).learners.values()
    assert isinstance(made, Policy)
    return made


def _seed(seed: int, number: int) -> Any:
    """Return a seed whose numbers have nothing in common with those of other seeds."""
    from keyhole.core import child_seed, seed_sequence

    return child_seed(seed_sequence(seed), number)


def _check_file(plot: Path | None) -> None:
    """Raise before anything is computed if a picture could not be written."""
    if plot is None:
        return
    if plot.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidValue(f"--plot must end in .png, .svg or .pdf, got {plot.name}")
    if not plot.resolve().parent.is_dir():
        raise InvalidValue(
            f"{plot} cannot be written: create the folder {plot.resolve().parent} first"
        )


def _checked(
    world: LinearWorld, policy: Policy, found: Certificate, runs: int | None, seed: int
) -> Check | None:
    if runs is None:
        return None
    from keyhole.lab.audit import check_certificate

    return check_certificate(
        world, policy, found, runs=runs, seed=_seed(seed, CHECK), progress=None
    )


# The level of the test of a certificate.
LEVEL = 0.01


def _as_proved(check: Check) -> bool:
    """Return whether an exact test at 1% does not contradict the certificate."""
    from keyhole.lab.evidence import Share

    held = Share(check.runs - check.violations, check.runs)
    return held.p_against(1.0 - check.certificate.delta) >= LEVEL


def _draw(
    world: LinearWorld, found: Certificate, checked: Check | None, file: Path, delta: float
) -> None:
    import numpy as np

    from keyhole.lab import plots
    from keyhole.theory import bounds, instance

    # Theorem 2 has no proof; its values are drawn where they are finite, with v = R.
    c = instance(world).constants(delta=delta)
    theorem = bounds.theorem_2(c, horizon=np.array(found.times, dtype=float))
    lines = {"theorem 2 (open)": theorem} if np.isfinite(theorem).all() else {}
    runs = None if checked is None else checked.curves
    plots.certificate(found, runs, lines=lines).savefig(file, dpi=200)


def _show(found: Certificate, checked: Check | None, latex: bool, json: bool) -> None:
    if json:
        given = found.to_json()
        if checked is not None:
            names = ("runs", "violations", "worst", "mean", "slack")
            given["check"] = {name: getattr(checked, name) for name in names}
        as_json(given)
        return
    said = found.to_latex() if latex else found.explain()
    out().print(said, soft_wrap=True, markup=False)
    if checked is not None:
        # In LaTeX it is a comment.
        out().print(f"{'%' if latex else ''}\n{'% ' if latex else ''}{checked}", soft_wrap=True)
