"""`keyhole serve`: the decision service of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keyhole.cli.console import clean

EXAMPLES = """
Examples:

[bold]keyhole serve[/]   programs of this machine decide at http://127.0.0.1:8000

[bold]keyhole serve --data decisions --config loops.toml --port 8080[/]

[bold]keyhole keys add web --role decide --role reward && keyhole serve --host 0.0.0.0[/]
"""

Data = Annotated[Path, typer.Option(help="Folder of the service; made if it does not exist.")]
FOLDER = Path("keyhole-data")


@clean
def serve(
    data: Data = FOLDER,
    host: Annotated[
        str, typer.Option(help="Address. One that others can reach needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with a table of settings for each loop.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Origin of pages that may send requests; several can be given."),
    ] = None,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Write a line of JSON for every request.")
    ] = False,
    without_keys: Annotated[
        bool,
        typer.Option(
            "--without-keys", help="Serve without keys again, after keys.json was deleted."
        ),
    ] = False,
) -> None:
    """Serve decisions over HTTP, from one folder, until Ctrl-C or SIGTERM.

    An answer is sent after the disk has confirmed every row that it follows from. Routes are listed
    at /openapi.json.
    """
    from keyhole.service import Options, loops_of
    from keyhole.service import serve as run

    options = Options(
        host=host,
        loops={} if config is None else loops_of(config),
        origins=tuple(origin or ()),
        log_requests=log_requests,
        without_keys=without_keys,
    )
    run(data, port=port, options=options, started=_started, log=True)


def _started(address: str) -> None:
    typer.echo(f"keyhole serves at {address}")
