"""`keyhole theory`: the constants of a world, the paper's bounds for it, and a planner."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table

from keyhole.cli.console import as_json, clean, err, out
from keyhole.cli.data import Json
from keyhole.cli.worlds import (
    Arms,
    Config,
    ContextDim,
    Delta,
    Dim,
    Seed,
    linear_world,
)
from keyhole.errors import InvalidValue

if TYPE_CHECKING:
    from keyhole.lab.audit import Overview
    from keyhole.lab.worlds import LinearWorld
    from keyhole.theory import Promise, Promises

EXAMPLES = """
Examples:

[bold]keyhole theory --arms 5 --context-dim 20 --dim 10[/]   constants and bounds

[bold]keyhole theory --error 0.1 --arm 2[/]   also the rounds until the error of arm 2 is below 0.1

[bold]keyhole theory --plot looseness.svg[/]   where the regret bound loses, as a picture

[bold]keyhole theory --config study.toml --horizon 100000 --delta 0.01 --json[/]
"""

# Rounds and replications of the simulation that measures the planner's rate.
ROUNDS, REPLICATIONS = 4000, 20
NOTHING = "nothing is promised"
# What --plot can write.
KINDS = (".svg", ".png", ".pdf", ".tex", ".json")


@clean
def theory(
    arms: Arms = None,
    context_dim: ContextDim = None,
    dim: Dim = None,
    config: Config = None,
    horizon: Annotated[int, typer.Option(min=2, help="Horizon of the bounds, in rounds.")] = 10_000,
    delta: Delta = 0.05,
    v: Annotated[
        float | None, typer.Option(help="Dispersion of Thompson sampling.  \\[default: R]")
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="Also plan the rounds until an arm's error is below this.  \\[default: no plan]"
        ),
    ] = None,
    arm: Annotated[int, typer.Option(min=1, help="Arm of the plan, from 1.")] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw all lines for the regret, and where theorem 2 loses, into this file: "
            ".svg, .png or .pdf, or write the table as "
            ".tex or .json.  \\[default: no picture]"
        ),
    ] = None,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Print the constants of a world, and the paper's bounds for it.

    Each bound has a status: proved, repaired or open, with the gaps of its proof listed below. A
    bound that begins after the horizon prints as "not yet". Constants that are estimated enter
    bounds by their safe value.

    Below is the asymptotic regret of Thompson sampling, the price of v = R, a v that explores at
    little cost, and the worth of each row of the sensing matrix: derived, and not proved.

    With --error, the number of rounds until an arm's error is below it is printed too: by theorem
    1, and by simulation.
    """
    from keyhole.lab.audit import overview
    from keyhole.theory import GAPS, Promises, instance

    world = linear_world(arms, context_dim, dim, config, seed)
    if arm > world.n_arms:
        raise InvalidValue(f"--arm must be from 1 to {world.n_arms}, got {arm}")
    if error is not None and not math.isfinite(world.r2):
        raise InvalidValue(
            "--error cannot be used with this world: contexts and sensing noise are not both "
            "normal, so that estimates do not converge to eta"
        )
    if plot is not None and plot.suffix not in KINDS:
        raise InvalidValue(f"--plot must end with {', '.join(KINDS)}, got {plot.name}")
    found = instance(world)
    promises = Promises(found, horizon=horizon, delta=delta, v=v)
    bounds = {name: _entry(one) for name, one in promises.named.items()}
    of_arms = [
        {name: _entry(one) for name, one in promises.of_arm(i).items()} for i in range(world.n_arms)
    ]
    met = {gap for one in (*bounds.values(), *of_arms[0].values()) for gap in one["gaps"]}
    given: dict[str, Any] = {
        "horizon": horizon,
        "delta": delta,
        "v": promises.constants.v,
        "unmet": list(found.unmet),
        "constants": {name: vars(one) for name, one in found.named.items()},
        "bounds": bounds,
        "arms": of_arms,
        "gaps": {name: text for name, text in GAPS.items() if name in met},
    }
    given["asymptote"] = _asymptote(world, horizon, v)
    if error is not None:
        given["plan"] = _plan(world, promises, arm, error, seed)
    lines = overview(
        world, found, horizon=horizon, delta=delta, v=v, seed=seed, simulated=plot is not None
    )
    loss = lines.derivation
    given["derivation"] = [
        {**vars(row), "factor": factor} for row, factor in zip(loss.rows, loss.factors, strict=True)
    ]
    if plot is not None:
        _draw(lines, plot)
    if json:
        as_json(given)
        return
    _show(given)


def _draw(found: Overview, path: Path) -> None:
    """Write a derivation into a file, as a picture or as a table, by the file's ending."""
    from keyhole.files import replacing
    from keyhole.lab import plots

    with replacing(path) as file:
        if path.suffix in (".tex", ".json"):
            loss = found.derivation
            text = loss.to_latex() if path.suffix == ".tex" else loss.to_json()
            file.write(f"{text}\n".encode())
        else:
            figure = plots.overview(
                found.derivation, found.certificate, found.runs, lines=found.lines
            )
            figure.savefig(file, format=path.suffix[1:])


def _entry(one: Promise) -> dict[str, Any]:
    """Return a bound as a table for JSON; before it begins, without a value but with its start."""
    return {
        "value": one.value,
        "from": one.start,
        "label": one.label,
        "meaning": one.meaning,
        "status": one.status,
        "gaps": list(one.gaps),
    }


def _asymptote(world: LinearWorld, horizon: int, v: float | None) -> dict[str, Any]:
    """Return the asymptotic regret of Thompson sampling, or the reason that none is derived."""
    from keyhole.core import ThompsonSampling
    from keyhole.theory import asymptote, exploration, sensor_rows

    policy = ThompsonSampling(v="oracle" if v is None else v)
    try:
        found = asymptote(world, policy, horizon=horizon)
    except InvalidValue as reason:
        return {"refused": str(reason)}
    known: dict[str, Any] = {"constant": found.constant, "error": found.error}
    try:
        known["regret"] = float(found.regret(horizon))
        known["slope"] = float(found.slope(horizon))
        explored = exploration(world, horizon=horizon)
        rows = sensor_rows(world, policy, horizon=horizon) if world.dim > 1 else ()
    except InvalidValue as reason:
        return {**known, "refused": str(reason)}
    return {
        **known,
        "exploration": asdict(explored),
        "sensor_rows": [asdict(row) for row in rows],
    }


def _plan(
    world: LinearWorld, promises: Promises, arm: int, error: float, seed: int
) -> dict[str, Any]:
    """Return the rounds until an arm's error is small: by theorem 1 and by simulation."""
    from keyhole.core import ThompsonSampling
    from keyhole.lab.simulation import simulate
    from keyhole.lab.summary import times_root

    v = float(promises.constants.v)
    runs = simulate(
        world,
        # Without a finite R there is no bound, but a policy may still use the true scale.
        ThompsonSampling(v=v if math.isfinite(v) else "oracle"),
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
    out().print(_constants(given["constants"]))
    if given["unmet"]:
        empty = given["bounds"]["theorem_2_repaired"]["from"] == math.inf
        said_once = (
            "Nothing is promised of estimates or regret in this world."
            if empty
            else "The printed bounds promise nothing of estimates or regret in this world."
        )
        reasons = escape(". ".join(given["unmet"]))
        out().print(f"[bold yellow]{said_once}[/] {reasons}.")
    numbers = {name: i for i, name in enumerate(given["gaps"], start=1)}
    v = f", v = {given['v']:.3g}" if math.isfinite(given["v"]) else ""
    title = f"Bounds for {given['horizon']:,} rounds, with probability {1 - given['delta']:g}{v}"
    table = _table("bound", title=title)
    for name, one in given["bounds"].items():
        if one["from"] != math.inf:
            meaning = f"{name} [dim]{one['label']}[/]\n{escape(one['meaning'])}"
            table.add_row(meaning, said(one["value"], one["from"]), _status(one, numbers))
    out().print(table)
    empty = [name for name, one in given["bounds"].items() if one["from"] == math.inf]
    if empty:
        out().print(f"Nothing is promised by {', '.join(empty)}.")
    arms = _table("arm", "bound", title="Of each arm, at the end")
    for i, arm in enumerate(given["arms"], start=1):
        for name, one in arm.items():
            if one["from"] != math.inf:
                words = f"{name} [dim]{one['label']}[/]"
                value = said(one["value"], one["from"])
                arms.add_row(str(i), words, value, _status(one, numbers))
        arms.add_section()
    if arms.rows:
        out().print(arms)
    if numbers:
        out().print("Open in the proofs:")
    for name, number in numbers.items():
        out().print(Padding(escape(f"{number}. {given['gaps'][name]}."), (0, 0, 0, 2)))
    err().print(
        "[dim]not yet: the bound begins beyond this horizon, and the number is the first horizon "
        "that reaches it. nu_1, ell and tau are for this horizon, and grow with it.[/]"
    )
    out().print(_derived(given["derivation"]))
    _show_asymptote(given["asymptote"], given["v"], given["horizon"])
    if "plan" in given:
        out().print(_planned(given["plan"]), soft_wrap=True)


def _derived(rows: list[dict[str, Any]]) -> Table:
    """Return the regret bound, step by step from the printed theorem 2 to the repaired one."""
    title = "Where the regret bound loses, each row after all replacements up to it"
    table = Table("row", Column("bound", no_wrap=True), "factor", "status", title=title,
                  title_justify="left")  # fmt: skip
    for row in rows:
        value = _plain(f"{row['value']:.1e}") if math.isfinite(row["value"]) else NOTHING
        known = math.isfinite(row["factor"]) and math.isfinite(row["value"])
        factor = _plain(f"{row['factor']:.1e}") if known else ""
        table.add_row(escape(row["name"]), value, factor, row["status"])
    return table


def _show_asymptote(found: dict[str, Any], v: float, horizon: int) -> None:
    if "refused" in found:
        _show_refusal(found, v, horizon)
        return
    spread = f" ± {found['error']:.1g}" if found["error"] > 0.0 else ""
    explored = found["exploration"]
    out().print(
        f"Regret of Thompson sampling with v = {v:.3g}, derived and not proved: c log T in the "
        f"end, c = {found['constant']:.4g}{spread}; {found['regret']:,.0f} after {horizon:,} "
        f"rounds, where its slope is {found['slope']:.4g}. Of v = R = {explored['r']:.3g} it is "
        f"{explored['oracle']:,.0f} and of Greedy, unless it starves an arm by chance, "
        f"{explored['least']:,.0f}; the constant of v = R is {explored['price']:.3g} times that of "
        f"Greedy. The largest v within 5% of Greedy, which explores at little cost: "
        f"{explored['best_v']:.3g}."
    )
    if found["sensor_rows"]:
        out().print(_sensor_rows(found["sensor_rows"], found["constant"], horizon))


def _show_refusal(found: dict[str, Any], v: float, horizon: int) -> None:
    """Print the known part of the regret, and the reason that the rest is not derived."""
    if "constant" not in found:
        out().print(f"No asymptote of the regret: {escape(found['refused'])}.")
        return
    known = f"{found['regret']:,.0f} after {horizon:,} rounds. " if "regret" in found else ""
    rest = "No comparison with Greedy or other sensors" if known else "No curve until then"
    out().print(
        f"Regret of Thompson sampling with v = {v:.3g}, derived and not proved: c log T in the "
        f"end, c = {found['constant']:.4g}. {known}{rest}: {escape(found['refused'])}."
    )


def _sensor_rows(rows: list[dict[str, Any]], constant: float, horizon: int) -> Table:
    """Return the worth of each row of the sensing matrix, as a table."""
    table = Table("entry", "c without it", "reward lost without it", "c if its noise is halved",
                  "reward gained by that", title_justify="left",
                  title=f"Rows of the sensing matrix: c is {constant:.4g}, reward over "
                        f"{horizon:,} rounds")  # fmt: skip
    for row in rows:
        without, halved = row["without"], row["halved"]
        table.add_row(
            f"y_{row['row'] + 1}",
            f"{without['constant']:.4g}",
            f"{-without['total']:,.0f}",
            f"{halved['constant']:.4g}",
            f"{halved['total']:,.0f}",
        )
    return table


def _table(*heads: str, title: str) -> Table:
    """Return a table with values and statuses that never wrap; other columns get the rest."""
    side = (Column("value", no_wrap=True), Column("status", no_wrap=True))
    return Table(*heads, *side, title=title, title_justify="left")


def _constants(constants: dict[str, Any]) -> Table:
    table = Table("constant", "value", "± error", "safe", "label", "meaning", title="Constants",
                  title_justify="left")  # fmt: skip
    for name, one in constants.items():
        error = f"{one['error']:.1g}" if one["error"] > 0.0 else "exact"
        safe = f"{one['safe']:.4g}" if one["safe"] != one["value"] else ""
        value, label = f"{one['value']:.4g}", one["label"]
        table.add_row(name, value, error, safe, label, escape(one["meaning"]))
    return table


def said(value: float | None, start: float | None) -> str:
    """Return a bound's value as text, or the reason that it has none.

    Parameters
    ----------
    value : float or None
        Value of the bound.
    start : float or None
        First horizon with a value, infinite if there is none; None if there is a value.

    Examples
    --------
    >>> said(None, 6.7e14), said(None, math.inf), said(0.125, None)
    ('not yet: from 6.7e14 on', 'nothing is promised', '0.125')
    """
    if start is None:
        return _plain(f"{value:.3g}")
    return _plain(f"not yet: from {start:.1e} on") if start < math.inf else NOTHING


def _plain(text: str) -> str:
    """Return a text with numbers such as 6.7e8 in place of Python's 6.7e+08."""
    return re.sub(r"e\+0?", "e", text)


def _status(one: dict[str, Any], numbers: dict[str, int]) -> str:
    """Return the status with the numbers of its proof gaps, which are listed below the tables."""
    marks = _ranges(sorted(numbers[gap] for gap in one["gaps"]))
    return f"{one['status']} [dim]{marks}[/]" if marks else str(one["status"])


def _ranges(marks: list[int]) -> str:
    """Return numbers in order as text, with runs of them shortened.

    Examples
    --------
    >>> _ranges([1, 2, 3, 5, 7, 8])
    '1-3 5 7-8'
    """
    starts = [mark for mark in marks if mark - 1 not in marks]
    ends = [mark for mark in marks if mark + 1 not in marks]
    pairs = zip(starts, ends, strict=True)
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in pairs)


def _planned(plan: dict[str, Any]) -> str:
    spread = 2.0 * plan["rate_error"] / plan["rate"] * plan["by_simulation"]
    late = plan["by_the_bound"]
    bound = _plain(f"from T = {late:.1e} on") if math.isfinite(late) else "never"
    return (
        f"Arm {plan['arm']} is known to within {plan['error']:g}: as simulated on average "
        f"after {plan['by_simulation']:,.0f} ± {spread:,.0f} rounds (error x sqrt(t) = "
        f"{plan['rate']:.3g} ± {plan['rate_error']:.1g}, measured from round "
        f"{ROUNDS // 2:,} to {ROUNDS:,}); by theorem 1, whose proof is open, {bound}."
    )
