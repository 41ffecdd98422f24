"""`keyhole evaluate`: what other policies would have earned, from a log."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from keyhole.cli.console import as_json, clean, err, out
from keyhole.cli.data import Json
from keyhole.errors import InvalidValue

EXAMPLES = """
Examples:

[bold]keyhole evaluate decisions.jsonl --policy greedy --policy thompson:v=0.5[/]   two policies

[bold]keyhole evaluate decisions.jsonl --policy uniform --policy arm:A[/]   uniform choices, one arm

[bold]keyhole evaluate decisions.parquet --policy greedy --estimator dr --json[/]
"""

WORDS = {"uniform": "uniform", "as-logged": "as logged"}


@clean
def evaluate(
    log: Annotated[Path, typer.Argument(help="Log of a bandit: JSON lines or Parquet.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy such as greedy or thompson:v=0.5, uniform, as-logged, or arm:NAME. "
            "Several can be given.  \\[default: as-logged, greedy and uniform]"
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None, typer.Option(help="Estimator; several can be given.  \\[default: minvar]")
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level.")] = 0.95,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the intervals to a .png, .svg or .pdf file.")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate what other policies would have earned in the rounds of a log.

    The log is audited first: counts of arms against their probabilities, and each probability
    against the logged scores. Nothing is estimated from a log that is not sound.

    The value is that of acting so given the data that were collected, and not of a run that would
    have collected others. Rounds from the first missing reward on are not used.
    """
    from keyhole.evaluation import Logged, audit_log
    from keyhole.evaluation import evaluate as run

    if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidValue(f"--plot must end in .png, .svg or .pdf, got {plot.name}")
    with err().status(f"reading {log}") as status:
        given = Logged.of(log)
        status.update("auditing the log")
        sound = audit_log(given)
        status.update("evaluating")
        targets = {text: _target(text, given.arms) for text in policy or _DEFAULT}
        found = run(given, targets, estimator=estimator or "minvar", level=level)
    if plot is not None:
        found.plot().savefig(plot, dpi=200)
    if json:
        as_json({"audit": asdict(sound), "rows": [asdict(row) for row in found.rows]})
        return
    out().print(str(sound), soft_wrap=True, markup=False)
    out().print(f"\n{found}", soft_wrap=True, markup=False)
    if plot is not None:
        err().print(f"wrote {plot}", soft_wrap=True)


_DEFAULT = ("as-logged", "greedy", "uniform")


def _target(text: str, arms: tuple[Any, ...]) -> Any:
    """Return the target of a word: a policy, an arm, or one of `WORDS`."""
    from keyhole.cli import recipes

    if text in WORDS:
        return WORDS[text]
    if text.startswith("arm:"):
        from keyhole.evaluation import FixedArm

        name = text.removeprefix("arm:")
        # On a command line every name is a text; arms may be whole numbers.
        return FixedArm(next((arm for arm in arms if str(arm) == name), name))
    (made,) = recipes.from_flags({}, [text]).learners.values()
    return made
