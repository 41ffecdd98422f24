"""The unit for systemd and the image: every command line in them is one that Keyhole has."""

import json
import re
import shlex
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

from typer.main import get_command

from keyhole.cli import app
from keyhole.service.http.server import GRACE

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, WHEELS = PYPROJECT["project"], PYPROJECT["tool"]["cibuildwheel"]["build"]
UNIT = (ROOT / "deploy" / "keyhole.service").read_text()
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the parameters of a command line after its program; one it does not have raises."""
    command: Any = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    parameters: dict[str, Any] = command.make_context(command.name, words).params
    return parameters


def unit() -> dict[str, str]:
    """Return the settings of the unit's service."""
    file = RawConfigParser()
    file.optionxform = str  # type: ignore[assignment, method-assign]
    file.read_string(UNIT)
    assert set(file) == {"DEFAULT", "Unit", "Service", "Install"}
    return dict(file["Service"])


def instructions(name: str) -> list[str]:
    """Return the arguments of each instruction of the Containerfile with a name."""
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.MULTILINE)


def test_the_unit_starts_a_service_on_its_own_folder() -> None:
    settings = unit()
    program, *words = shlex.split(settings["ExecStart"])
    assert program.startswith("/")  # systemd asks for a path
    assert Path(program).name in PROJECT["scripts"]
    assert words[0] == "serve"
    # The only folder that it may write to.
    assert parsed(words)["data"] == Path("/var/lib", settings["StateDirectory"])


def test_the_key_of_the_unit_is_made_in_its_folder() -> None:
    program, *words = shlex.split(unit()["ExecStart"])
    [given] = re.findall(rf"^#   {program} (keys add .*)$", UNIT, re.MULTILINE)
    assert parsed(shlex.split(given))["data"] == parsed(words)["data"]
    assert f"-m venv {Path(program).parents[1]} " in UNIT


def test_the_image_is_built_without_data_and_history() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", "build", "dist", "keyhole-data", "site"} <= set(ignored)
    assert not {"README.md", "pyproject.toml", "setup.py", "src"} & set(ignored)


def test_the_unit_waits_for_the_end() -> None:
    settings = unit()
    assert settings["KillSignal"] == "SIGTERM"
    assert float(settings["TimeoutStopSec"]) > GRACE


def test_the_image_has_what_its_command_needs() -> None:
    [installed] = re.findall(r"pip install .*'\.\[(.*)\]'", CONTAINERFILE)
    assert installed.split(",") == ["service"]
    assert set(installed.split(",")) <= set(PROJECT["optional-dependencies"])
    versions = set(re.findall(r"python:(\S+?)-slim", CONTAINERFILE))
    assert len(versions) == 1, "kernels are compiled for one version of Python"
    assert f"cp{versions.pop().replace('.', '')}-*" in WHEELS.split()


def test_the_image_starts_a_service_on_its_volume() -> None:
    [[entry]] = map(json.loads, instructions("ENTRYPOINT"))
    [given] = map(json.loads, instructions("CMD"))
    program = Path(entry)
    assert program.name in PROJECT["scripts"]
    [copied] = instructions("COPY --from=build")
    assert program.is_relative_to(copied.split()[1])
    parameters = parsed(given)
    [volume], [port] = instructions("VOLUME"), instructions("EXPOSE")
    assert (parameters["data"], parameters["port"]) == (Path(volume), int(port))
    assert parameters["host"] == "0.0.0.0"
    assert f"--home-dir {volume} " in CONTAINERFILE


def test_the_key_of_the_image_is_made_in_its_volume() -> None:
    [(folder, words)] = re.findall(
        r"^# podman run --volume keyhole:(\S+) keyhole (.*)$", CONTAINERFILE, re.MULTILINE
    )
    assert parsed(shlex.split(words))["data"] == Path(folder)
    assert [folder] == instructions("VOLUME")
