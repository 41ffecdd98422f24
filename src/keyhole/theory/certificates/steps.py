"""`Step`: one step of a certificate's proof, and tables of them as text and LaTeX."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 96


@dataclass(frozen=True)
class Step:
    """A step of a proof.

    Parameters
    ----------
    name : str
        A short name.
    statement : str
        The statement in words.
    formula : str
        The same as a formula, in plain text.
    latex : str
        The formula in LaTeX.
    value : float
        Its number for this world, policy and horizon.
    share : float
        The part of delta with which it may fail; 0 if it always holds.
    why : str
        The theorem that it uses, with its conditions.
    """

    name: str
    statement: str
    formula: str
    latex: str
    value: float
    share: float
    why: str


def number(value: float) -> str:
    """Return a number in four digits, with large ones in full.

    Examples
    --------
    >>> number(4449.9), number(0.25), number(2.0**-19), number(0.0)
    ('4,450', '0.25', '1.907e-06', '0')
    """
    return f"{value:,.0f}" if 1000.0 <= abs(value) < 1e9 else f"{value:.4g}"


def as_text(steps: Sequence[Step]) -> str:
    """Return steps as a table for a terminal.

    Parameters
    ----------
    steps : sequence of Step
        The steps.
    """
    lines = [f"{'step':<24}{'value':>14}{'fails with at most':>22}", "-" * WIDTH]
    for at, step in enumerate(steps, start=1):
        share = number(step.share) if step.share else "0"
        lines.append(f"{at:>2} {step.name:<21}{number(step.value):>14}{share:>22}")
        for text in (step.statement, step.formula, f"Why: {step.why}"):
            lines += textwrap.wrap(text, WIDTH, initial_indent="   ", subsequent_indent="   ")
    total = number(sum(step.share for step in steps))
    return "\n".join([*lines, "-" * WIDTH, f"{'   all steps':<38}{total:>22}"])


def as_latex(steps: Sequence[Step]) -> str:
    """Return steps as a LaTeX table, which needs the packages amsmath and booktabs.

    Parameters
    ----------
    steps : sequence of Step
        The steps.
    """
    rows = [
        rf"{escaped(step.name)} & ${step.latex}$ & ${_power(step.value)}$ & "
        rf"${_power(step.share)}$ & {escaped(step.why)} \\"
        for step in steps
    ]
    return "\n".join(
        [
            r"\begin{tabular}{@{}llrrp{0.36\linewidth}@{}}",
            r"\toprule",
            r"step & statement & value & $\delta$ & why \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _power(value: float) -> str:
    """Return a number for LaTeX, large and small ones as a power of 10."""
    digits, _, power = f"{value:.4g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits


def escaped(text: str) -> str:
    r"""Return plain text as LaTeX shows it.

    Parameters
    ----------
    text : str
        The text.

    Examples
    --------
    >>> print(escaped("50% of E[u_i]^2"))
    50\% of E[u\_i]\textasciicircum{}2
    """
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    special |= {one: "\\" + one for one in "&%$#_{}"}
    # Brackets after \\ would be read as an argument of it; no cell begins with one.
    return "".join(special.get(one, one) for one in text)
