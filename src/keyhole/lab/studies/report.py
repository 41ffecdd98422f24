"""One page for all studies of a folder: each claim, its figure and its verdict."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from keyhole.files import replacing
from keyhole.lab import plots
from keyhole.lab.audit import FAMILY_ERROR, LEMMAS, Finding, Scope, overview
from keyhole.lab.evidence import Outcome
from keyhole.lab.studies.running import manifest
from keyhole.lab.studies.study import Study

GREEK = {
    "lambda": "λ",
    "nu": "\N{GREEK SMALL LETTER NU}",
    "tau": "τ",
    "eta": "η",
    "kappa": "κ",
    "delta": "δ",
    "mu": "μ",
}
# The CSS class of each outcome on the page.
OUTCOMES = {Outcome.HOLDS: "yes", Outcome.FAILS: "no", Outcome.UNDECIDED: "open"}
PAGE = "index.html"
AUDIT_PAGE, LEFT_OUT = "audit.html", ".left-out.json"


def write(out: Path, studies: list[Study], left_out: dict[str, str] | None = None) -> Path:
    """Write the page of all studies in a folder, with the omitted studies and the reasons.

    Parameters
    ----------
    out : Path
        The folder.
    studies : list of Study
        The studies to look for in the folder.
    left_out : dict of str to str, optional
        The reason for each omitted study, by its name. By default the reasons of the previous page.

    Returns
    -------
    Path
        The path of the page.
    """
    kept = out / LEFT_OUT
    if left_out is None:
        left_out = json.loads(kept.read_text()) if kept.exists() else {}
    with replacing(kept) as file:
        file.write(json.dumps(left_out).encode())
    found = [made for study in studies if (made := manifest(out / study.name)) is not None]
    for made in found:
        made["figure"] = _embedded(out / made["study"] / "figure.svg")
    titles = {study.name: study.title for study in studies}
    return _rendered(
        out / PAGE,
        "report.html.j2",
        studies=found,
        left_out=_missing(left_out, found),
        titles=titles,
        outcomes=OUTCOMES,
        plural=_plural,
        choices=_choices(found),
        audited=(out / AUDIT_PAGE).exists(),
    )


def write_audit(out: Path, scope: Scope, findings: list[Finding]) -> Path:
    """Write the page of an audit, which the page of the studies links to.

    Parameters
    ----------
    out : Path
        The folder.
    scope : Scope
        The scope of the audit.
    findings : list of Finding
        The findings of the audit.

    Returns
    -------
    Path
        The path of the page.
    """
    found = overview(
        scope.world,
        scope.promises.instance,
        horizon=scope.horizon,
        delta=scope.delta,
        seed=scope.seed,
    )
    picture = io.StringIO()
    figure = plots.overview(found.derivation, found.certificate, found.runs, lines=found.lines)
    figure.savefig(picture, format="svg", metadata={"Date": None})
    return _rendered(
        out / AUDIT_PAGE,
        "audit.html.j2",
        scope=scope,
        findings=findings,
        loss=found.derivation,
        # A browser takes an <svg> without the XML declaration before it.
        picture=Markup(picture.getvalue()[picture.getvalue().index("<svg") :]),
        family_error=FAMILY_ERROR,
        lemmas=LEMMAS,
    )


def _rendered(path: Path, template: str, **given: Any) -> Path:
    pages = Environment(
        loader=PackageLoader("keyhole.lab.studies", "."), autoescape=True, undefined=StrictUndefined
    )
    pages.filters["formulas"] = formulas
    with replacing(path) as file:
        file.write(pages.get_template(template).render(**given).encode())
    return path


def formulas(text: str) -> Markup:
    """Return plain text as HTML, with superscripts, subscripts and Greek letters."""
    html = re.sub(r"\^(-?\d+([./]\d+)?)", r"<sup>\1</sup>", str(escape(text)))
    for word, letter in GREEK.items():
        html = re.sub(rf"\b{word}(_|\b)", rf"{letter}\1", html)
    return Markup(
        re.sub(rf"\b([dpnvx{''.join(GREEK.values())}])_(\w)\b", r"<i>\1</i><sub>\2</sub>", html)
    )


def _plural(outcome: str, count: int) -> str:
    """Return an outcome as a verb that agrees with the number of claims."""
    many = {Outcome.HOLDS: "hold", Outcome.FAILS: "do not hold"}
    return str(outcome) if count == 1 else many.get(Outcome(outcome), str(outcome))


def _choices(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every choice once, with the studies that made it."""
    made: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        for choice in one["choices"]:
            made.setdefault(tuple(choice.values()), []).append(one["study"])
    return [
        {"what": what, "paper": paper, "ours": ours, "studies": studies}
        for (what, paper, ours), studies in made.items()
    ]


def _missing(left_out: dict[str, str], found: list[dict[str, Any]]) -> dict[str, str]:
    there = {made["study"] for made in found}
    return {name: reason for name, reason in left_out.items() if name not in there}


def _embedded(path: Path) -> str:
    """Return a figure as a data URL, so that the page needs no other file."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
