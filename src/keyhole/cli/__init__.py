"""The command `keyhole`: the only part that prints."""

from __future__ import annotations

import typer

from keyhole.cli import (
    audit,
    certify,
    data,
    evaluate,
    fit,
    folder,
    keys,
    reproduce,
    serve,
    simulate,
    theory,
)

app = typer.Typer(
    name="keyhole",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("reproduce", epilog=reproduce.EXAMPLES)(reproduce.reproduce)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate)
app.command("theory", epilog=theory.EXAMPLES)(theory.theory)
app.command("certify", epilog=certify.EXAMPLES)(certify.certify)
app.command("audit", epilog=audit.EXAMPLES)(audit.audit)
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("fit", epilog=fit.EXAMPLES)(fit.fit)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("verify", epilog=folder.VERIFY)(folder.verify)
app.command("replay", epilog=folder.REPLAY)(folder.replay)
app.command("compact", epilog=folder.COMPACT)(folder.compact)
app.command("export", epilog=folder.EXPORT)(folder.export)
app.add_typer(data.app, name="data")
app.add_typer(keys.app, name="keys")


@app.callback(invoke_without_command=True)
def about(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Simulate contextual bandits with partially observed contexts, and reproduce the paper."""
    if version:
        from keyhole import __version__

        typer.echo(f"keyhole {__version__}")
        raise typer.Exit


__all__ = ["app"]
