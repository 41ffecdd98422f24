"""`keyhole evaluate`: what other policies would have earned, from a log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn

from keyhole.cli.console import as_json, clean, err, out, showing_warnings
from keyhole.cli.data import Json
from keyhole.errors import InvalidValue

if TYPE_CHECKING:
    from keyhole.evaluation import Logged

EXAMPLES = """
Examples:

[bold]keyhole evaluate decisions.jsonl --policy greedy --policy thompson:v=0.5[/]   two policies

[bold]keyhole evaluate decisions.jsonl --policy uniform --policy arm:A[/]   uniform choices, one arm

[bold]keyhole evaluate decisions.parquet --policy greedy --estimator dr --json[/]

[bold]keyhole evaluate exported/ --policy uniform[/]   all files of a folder that Personalizer wrote

[bold]keyhole evaluate clicks.parquet --format frame:arm=item,probability=p,reward=clicked[/]
"""

WORDS = {"uniform": "uniform", "as-logged": "as logged"}


@clean
def evaluate(
    log: Annotated[
        list[Path],
        typer.Argument(
            help="Log of a bandit, or of Vowpal Wabbit, Personalizer, Open Bandit, or a table with "
            "named columns; several files, or a folder of them."
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy such as greedy or thompson:v=0.5, uniform, as-logged, or arm:NAME. "
            "Several can be given.  \\[default: as-logged, greedy and uniform, where the log has "
            "what they need]"
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format of the log: keyhole, dsjson, personalizer, cb, open-bandit or frame, with "
            "settings such as dsjson:slot=0 or cb:arms=A/B/C.  \\[default: by its content]",
        ),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            help="Estimator; several can be given.  \\[default: minvar, or snips without means]"
        ),
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
    from keyhole.cli.formats import format_from
    from keyhole.evaluation import Logged, audit_log
    from keyhole.evaluation import evaluate as run

    if plot is not None and plot.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidValue(f"--plot must end in .png, .svg or .pdf, got {plot.name}")
    source = log[0] if len(log) == 1 else log
    with _bar(f"reading {log[0]}") as bar, showing_warnings():
        given = Logged.of(source, format=format_from(format_), progress=bar.step)
        bar.say("auditing the log")
        sound = audit_log(given)
        bar.say("evaluating")
        targets = {text: _target(text, given.arms) for text in policy or _usual(given)}
        found = run(given, targets, estimator=estimator or None, level=level)
    if plot is not None:
        found.plot().savefig(plot, dpi=200)
    if json:
        as_json({"audit": asdict(sound), "rows": [asdict(row) for row in found.rows]})
        return
    # Names of arms may look like markup, or like an emoji: arm:B: is one.
    out().print(str(sound), soft_wrap=True, markup=False, emoji=False)
    out().print(f"\n{found}", soft_wrap=True, markup=False, emoji=False)
    if plot is not None:
        err().print(f"wrote {plot}", soft_wrap=True)


class _Bar:
    """A bar of the bytes that were read, with what is being done."""

    def __init__(self, progress: Progress, said: str) -> None:
        self._progress = progress
        self._task = progress.add_task(said, total=None)

    def step(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def say(self, said: str) -> None:
        self._progress.update(self._task, description=said)


@contextmanager
def _bar(said: str) -> Iterator[_Bar]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = err()
    # A bar that cannot move would leave an empty line in a file.
    is_off = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_off) as progress:
        yield _Bar(progress, escape(said))


def _usual(log: Logged) -> list[str]:
    """Return the targets for which a log has what they need."""
    has_scores = log.mean is not None and log.width is not None
    usual = ["as-logged"] if log.propensity is not None else []
    usual += ["greedy"] if has_scores or log.observation is not None else []
    return [*usual, "uniform"]


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
