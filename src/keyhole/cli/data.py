"""`keyhole data`: the public data sets, here or to be fetched.

Here and in the other commands, what takes long to import is imported when it is needed: help comes
at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from keyhole.cli.console import as_json, clean, err, out
from keyhole.errors import KeyholeError

if TYPE_CHECKING:
    from keyhole.datasets import Source

app = typer.Typer(
    help="The public data sets: what there is, fetch it, check it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="A folder of CSV files that serves instead of a download.",
        envvar="KEYHOLE_DATA",
        exists=True,
        file_okay=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def place(source: Source, data_dir: Path | None) -> str:
    """Where a data set would be read from."""
    from keyhole import datasets

    if source.openml is None:
        return "comes with scikit-learn"
    found = datasets.find(source, data_dir)
    return str(found) if found else f"not here; OpenML has it as {source.openml}"


@app.command("list", epilog="Example:  keyhole data list --data-dir my-folder")
@clean
def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """What data sets there are, and where they would be read from."""
    from keyhole.datasets import CATALOGUE

    rows: list[dict[str, str | int]] = [
        {
            "name": source.name,
            "rows": source.n_rows,
            "features": source.n_features,
            "classes": len(source.counts),
            "what": source.title,
            "place": place(source, data_dir),
        }
        for source in CATALOGUE.values()
    ]
    if json:
        as_json(rows)
        return
    for row in rows:
        sizes = f"{row['rows']:,} rows, {row['features']} features, {row['classes']} classes"
        out().print(f"[bold]{row['name']}[/]  {row['what']}")
        out().print(f"  {sizes}; {escape(str(row['place']))}", soft_wrap=True)


@app.command("fetch", epilog="Example:  keyhole data fetch eye_movements")
@clean
def fetch(
    name: Annotated[str, typer.Argument(help="One of `keyhole data list`.")],
    again: Annotated[bool, typer.Option("--again", help="Download it even if it is here.")] = False,
) -> None:
    """Download a data set from OpenML, verify it and keep it."""
    from keyhole import datasets

    with err().status(f"fetching {name}"):
        data = datasets.fetch(name, again=again)
    kept = datasets.cache_folder() / datasets.CATALOGUE[name].file
    out().print(f"{data!r} is right, and kept as {kept}", soft_wrap=True, markup=False)


@app.command("check", epilog="Example:  keyhole data check --data-dir my-folder")
@clean
def check(
    names: Annotated[list[str] | None, typer.Argument(help="By default all that are here.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Verify the data sets that are here: shape, class counts, checksum of the content.

    Exits with 1 if one that was named is missing, or any that is here is wrong.
    """
    from keyhole.datasets import CATALOGUE

    verdicts = {name: _checked(name, data_dir) for name in names or CATALOGUE}
    # What was not asked for by name may be missing, but not wrong.
    bad = {name for name, found in verdicts.items() if found["state"] == "wrong"}
    bad |= {name for name in names or () if verdicts[name]["state"] != "right"}
    if json:
        as_json(verdicts)
    else:
        colours = {"right": "green", "wrong": "bold red", "missing": "yellow"}
        for name, found in verdicts.items():
            state = f"[{colours[found['state']]}]{found['state']}[/]"
            out().print(f"{escape(name)}: {state}, {escape(found['detail'])}", soft_wrap=True)
    if bad:
        raise typer.Exit(1)


def _checked(name: str, data_dir: Path | None) -> dict[str, Any]:
    from keyhole import datasets

    if name in datasets.CATALOGUE:
        source = datasets.CATALOGUE[name]
        if source.openml is not None and datasets.find(source, data_dir) is None:
            return {"state": "missing", "detail": place(source, data_dir)}
    try:
        data = datasets.load(name, data_dir=data_dir)
    except KeyholeError as error:
        return {"state": "wrong", "detail": str(error)}
    return {"state": "right", "detail": repr(data)}
