"""`keyhole keys`: keys of clients of the decision service."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.table import Table

from keyhole.cli.console import as_json, clean, err, out
from keyhole.cli.data import Json
from keyhole.cli.serve import FOLDER, Data

# A service that has had keys stays closed, as `Access` and `check_keys` say.
NO_KEYS = "no keys: programs of this machine need none, unless keys.json was deleted"
ALL_REVOKED = "no keys, and every request needs one: 'keyhole keys add' makes a key"

app = typer.Typer(no_args_is_help=True, help="Add, list and revoke keys of the decision service.")


@app.command()
@clean
def add(
    name: Annotated[str, typer.Argument(help="Name of the key, by which it is revoked.")],
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="What it may do: decide, reward, read, or admin, which may do everything. "
            "Several can be given.  \\[default: decide and reward]"
        ),
    ] = None,
    loop: Annotated[
        str | None, typer.Option(help="The only loop that it is for.  \\[default: all]")
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="Days after which it ends.  \\[default: never]", min=0)
    ] = None,
    data: Data = FOLDER,
) -> None:
    """Make a key, and print it: it is shown once. A running service knows it within a second."""
    from keyhole.service import KeyFile

    expires = None if days is None else time.time() + 86_400.0 * days
    roles = role or ["decide", "reward"]
    secret = KeyFile(data).add(name, roles, loop=loop, expires=expires)  # type: ignore[arg-type]
    typer.echo(secret)
    err().print("Keep it: only its digest is stored. Send it as 'Authorization: Bearer KEY'.")


@app.command("list")
@clean
def list_keys(data: Data = FOLDER, json: Json = False) -> None:
    """List the keys, without their secrets."""
    from keyhole.service import KeyFile

    file = KeyFile(data)
    keys = file.read()
    if json:
        as_json(
            [
                {
                    "name": key.name,
                    "roles": key.roles,
                    "loop": key.loop,
                    "made": _day(key.made),
                    "expires": _day(key.expires),
                    "valid": key.is_valid(time.time()),
                }
                for key in keys
            ]
        )
        return
    if not keys:
        file.refresh()
        out().print(ALL_REVOKED if file.exists else NO_KEYS, markup=False, soft_wrap=True)
        return
    table = Table("name", "roles", "loop", "made", "expires")
    for key in keys:
        ends = _day(key.expires) or "never"
        ends += "" if key.is_valid(time.time()) else " (expired)"
        table.add_row(key.name, ", ".join(key.roles), key.loop or "all", _day(key.made), ends)
    out().print(table)


@app.command()
@clean
def revoke(
    name: Annotated[str, typer.Argument(help="Name of the key.")], data: Data = FOLDER
) -> None:
    """Delete a key. A running service refuses it within a second."""
    from keyhole.service import KeyFile

    KeyFile(data).revoke(name)
    err().print(f"revoked {name}", markup=False)


def _day(at: float | None) -> str | None:
    return None if at is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
