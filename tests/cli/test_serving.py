"""`keyhole serve` and `keyhole keys`: what they refuse and print. Servers are tested elsewhere."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keyhole.cli import app
from keyhole.service import KeyFile


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    return result.exit_code, result.stdout, result.stderr


def test_a_folder_without_keys_is_told_apart_from_one_whose_keys_were_revoked(
    tmp_path: Path,
) -> None:
    data = ("--data", str(tmp_path / "data"))
    assert run("keys", "list", "--json", *data)[:2] == (0, "[]\n")
    code, out, _ = run("keys", "list", *data)
    assert (code, out.startswith("no keys: programs of this machine need none")) == (0, True)
    run("keys", "add", "web", *data)
    run("keys", "revoke", "web", *data)
    code, out, _ = run("keys", "list", *data)
    assert (code, out.startswith("no keys, and every request needs one")) == (0, True)
    assert run("keys", "list", "--json", *data)[:2] == (0, "[]\n")


def test_keys_are_added_listed_and_revoked(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    code, out, err = run("keys", "add", "web", *data)
    assert (code, re.fullmatch(r"kh_[\w-]{43}\n", out) is not None) == (0, True)
    assert "only its digest is stored" in err
    run("keys", "add", "old", "--role", "read", "--loop", "home", "--days", "0", *data)
    code, out, _ = run("keys", "list", *data)
    assert code == 0
    assert "decide, reward" in out
    assert "(expired)" in out
    listed = json.loads(run("keys", "list", "--json", *data)[1])
    assert [(one["name"], one["roles"], one["loop"], one["valid"]) for one in listed] == [
        ("web", ["decide", "reward"], None, True),
        ("old", ["read"], "home", False),
    ]
    assert run("keys", "revoke", "old", *data)[0] == 0
    assert [key.name for key in KeyFile(tmp_path / "data").read()] == ["web"]
    code, _, err = run("keys", "revoke", "old", *data)
    assert (code, "there is no key 'old'; keys: web" in err) == (1, True)
    code, _, err = run("keys", "add", "x", "--role", "write", *data)
    assert (code, "roles must be among decide, reward, read, admin" in err) == (1, True)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--host", "0.0.0.0"), "while there is no key"),
        (("--config", "nope.toml"), "there is no file nope.toml"),
        (("--data", "file"), "file"),
    ],
)
def test_what_cannot_be_served_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    code, _, err = run("serve", *flags)
    assert code == 1
    assert says in err
