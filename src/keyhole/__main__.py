"""`python -m keyhole`, and the command `keyhole`."""

import sys


def main() -> None:
    """Run the command line, or say what it lacks."""
    try:
        from keyhole.cli import app
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("keyhole"):
            raise
        sys.exit(f"keyhole needs {missing.name} for its commands: pip install 'keyhole[lab]'")
    app()


if __name__ == "__main__":
    main()
