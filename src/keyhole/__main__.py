"""`python -m keyhole`, and the command `keyhole`.

Loading what a command needs takes seconds. The first line is therefore printed before anything is
imported, to stderr: results on stdout stay as they are.
"""

import sys

COMMANDS = ("reproduce", "simulate", "theory", "audit", "data")


def main() -> None:
    """Run the command line, or say what it lacks."""
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
