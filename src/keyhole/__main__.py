"""`python -m keyhole`, and the command `keyhole`.

Importing the modules of a command takes seconds. One line is therefore printed before any import,
to stderr, so that stdout has the results only.
"""

import sys

COMMANDS = ("reproduce", "simulate", "theory", "audit", "data", "fit")


def main() -> None:
    """Run the command line, or print the install line of a missing extra."""
    words = sys.argv[1:]
    if words and words[0] in COMMANDS and not {"-h", "--help"} & set(words):
        print(f"keyhole {words[0]}: starting", file=sys.stderr, flush=True)  # noqa: T201
    try:
        from keyhole.cli import app
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("keyhole"):
            raise
        from keyhole.errors import install_line

        sys.exit(f"keyhole needs {missing.name} for its commands: {install_line('lab')}")
    app()


if __name__ == "__main__":
    main()
