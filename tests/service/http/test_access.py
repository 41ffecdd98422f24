"""Who may do what: loopback, keys, roles, expiry, origins."""

import asyncio
import json
import stat
import time
from pathlib import Path

import pytest

from keyhole.errors import FileError, InvalidValue
from keyhole.service import KeyFile, Options, application
from tests.service.http.serving import PLAIN, Local, local

HOME = "/v1/loops/home"
DECISION = {"context": [1, 2], "event_id": "o-1"}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


# -- without keys ----------------------------------------------------------------------------------


def test_a_public_address_needs_a_key(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        with pytest.raises(InvalidValue, match="while there is no key"):
            application(tmp_path, Options(host=host))
    KeyFile(tmp_path).add("old", ["admin"], expires=time.time() - 1)
    with pytest.raises(InvalidValue, match="while there is no key"):
        application(tmp_path, Options(host="0.0.0.0"))
    KeyFile(tmp_path).add("new", ["admin"])
    application(tmp_path, Options(host="0.0.0.0")).service.close()


def test_without_keys_only_this_machine_is_served(tmp_path: Path) -> None:
    with local(tmp_path) as served:
        for host in ("localhost", "localhost:8000", "127.0.0.1", "[::1]:8000", "127.8.9.1:1"):
            assert served.get("/v1/loops", headers={"Host": host}).status_code == 200
        for host in ("evil.example", "evil.example:8000", "10.0.0.1", "localhost.evil.example"):
            answer = served.get("/v1/loops", headers={"Host": host})
            assert answer.status_code == 403
            assert "Host must be localhost" in answer.json()["detail"]
        for route in served.app.router.routes:  # of all, also those that need no key
            path = route.path.replace("{loop}", "home").replace("{event}", "e")
            assert served(route.method, path, headers={"Host": "evil.example"}).status_code == 403
    KeyFile(tmp_path).add("all", ["admin"])
    with local(tmp_path) as served:
        assert served.get("/readyz", headers={"Host": "shop.example"}).status_code == 200


@pytest.mark.parametrize("is_running", [False, True])
def test_a_folder_that_had_keys_is_not_served_without_them(
    tmp_path: Path, is_running: bool
) -> None:
    """Also if the key was made while the service ran."""
    if not is_running:
        KeyFile(tmp_path).add("all", ["admin"])
    with local(tmp_path) as served:
        KeyFile(tmp_path).add("more", ["admin"])
        served.runner.run(asyncio.sleep(0.5))
        assert served.get("/v1/loops").status_code == 401
    (tmp_path / "keys.json").unlink()
    with pytest.raises(InvalidValue, match=r"keys.json is missing, .* 'keyhole keys add'"):
        application(tmp_path)
    with local(tmp_path, Options(without_keys=True)) as served:
        assert served.get("/v1/loops").status_code == 200
    application(tmp_path).service.close()
    KeyFile(tmp_path).add("all", ["admin"])
    with pytest.raises(InvalidValue, match="--without-keys needs a folder without keys"):
        application(tmp_path, Options(without_keys=True))


def test_pages_of_other_origins_are_refused_unless_one_is_set(tmp_path: Path) -> None:
    evil, shop = {"Origin": "https://evil.example"}, {"Origin": "https://shop.example"}
    with local(tmp_path, Options(origins=("https://shop.example",))) as served:
        assert served.put(HOME, PLAIN, headers=evil).status_code == 403
        assert served.get("/v1/loops", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert served.get("/v1/loops", headers={"Sec-Fetch-Site": "none"}).status_code == 200
        own = {"Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin"}
        assert served.get("/v1/loops", headers=own).status_code == 200
        answer = served.put(HOME, PLAIN, headers=shop)
        assert answer.headers["access-control-allow-origin"] == "https://shop.example"
        assert served("OPTIONS", HOME, headers=shop).headers["allow"] == "GET, HEAD, PUT"
        preflight = served("OPTIONS", HOME + "/decide", headers=shop)
        assert preflight.status_code == 204
        assert "access-control-allow-methods" in preflight.headers
        assert (
            "access-control-allow-methods"
            not in served("OPTIONS", HOME + "/decide", headers=evil).headers
        )
        assert served("OPTIONS", "/nope").status_code == 404


# -- with keys -------------------------------------------------------------------------------------


ROLES = {
    "decide": {"decide", "activate", "observe"},
    "reward": {"reward", "rewards"},
    "read": {"show", "effects", "probabilities", "log", "model", "event", "metrics", "loops"},
    "admin": {"put", "arms", "forget"},
}
REQUESTS = {
    "decide": ("POST", HOME + "/decide", DECISION),
    "activate": ("POST", HOME + "/events/o-1/activate", None),
    "observe": ("POST", HOME + "/observe", {"contexts": [[1, 2]]}),
    "reward": ("POST", HOME + "/events/o-1/reward", {"value": 1.0}),
    "rewards": ("POST", HOME + "/rewards", "{}"),
    "show": ("GET", HOME, None),
    "effects": ("GET", HOME + "/effects", None),
    "probabilities": ("POST", HOME + "/probabilities", {"context": [1, 2]}),
    "log": ("GET", HOME + "/log", None),
    "model": ("GET", HOME + "/model", None),
    "event": ("GET", HOME + "/events/o-1", None),
    "metrics": ("GET", "/metrics", None),
    "loops": ("GET", "/v1/loops", None),
    "put": ("PUT", HOME, PLAIN),
    "arms": ("POST", HOME + "/arms", {"add": ["D"]}),
    "forget": ("DELETE", HOME + "/events/o-1", None),
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_it_is_for_and_nothing_else(tmp_path: Path, role: str) -> None:
    keys = KeyFile(tmp_path)
    admin, one = keys.add("admin", ["admin"]), keys.add("one", [role])  # type: ignore[list-item]
    with local(tmp_path) as served:
        served.put(HOME, PLAIN, headers=bearer(admin))
        served.post(HOME + "/decide", DECISION, headers=bearer(admin))
        for name, (method, path, content) in REQUESTS.items():
            status = served(method, path, content, headers=bearer(one)).status_code
            allowed = name in ROLES[role] or role == "admin"
            assert status == (200 if allowed else 403), (role, name)
        for path in ("/healthz", "/readyz", "/openapi.json"):
            assert served.get(path).status_code == 200  # without a key


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer nobody"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic eDp5"},
        {"Ocp-Apim-Subscription-Key": "nobody"},
    ],
)
def test_a_key_that_is_not_known_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    KeyFile(tmp_path).add("admin", ["admin"])
    with local(tmp_path) as served:
        answer = served.get("/v1/loops", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_key_is_for_its_loop_and_until_it_ends(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    admin = keys.add("admin", ["admin"])
    home = keys.add("home", ["decide", "read"], loop="home")
    old = keys.add("old", ["admin"], expires=time.time() - 1)
    with local(tmp_path) as served:
        for name in ("home", "other"):
            served.put(f"/v1/loops/{name}", PLAIN, headers=bearer(admin))
        assert served.post(HOME + "/decide", DECISION, headers=bearer(home)).status_code == 200
        other = served.post("/v1/loops/other/decide", DECISION, headers=bearer(home))
        assert (other.status_code, "loop 'other'" in other.text) == (403, True)
        assert served.get("/v1/loops", headers=bearer(home)).status_code == 403  # it is of all
        assert served.get("/v1/loops", headers=bearer(old)).status_code == 401


def test_only_an_admin_makes_a_loop_by_deciding(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    admin, decide = keys.add("a", ["admin"]), keys.add("d", ["decide"])
    given = {"context": {"hour": 1}, "actions": [{"id": "A"}]}
    rank = {"contextFeatures": [{"hour": 1}], "actions": [{"id": "A", "features": []}]}
    with local(tmp_path) as served:
        assert served.post(HOME + "/decide", given, headers=bearer(decide)).status_code == 404
        path = "/personalizer/v1.0/rank"
        assert served.post(path, rank, headers=bearer(decide)).status_code == 404
        assert served.post(HOME + "/decide", given, headers=bearer(admin)).status_code == 200
        assert served.post(path, rank, headers=bearer(admin)).status_code == 201


def test_a_key_that_decides_adds_no_arms_for_others(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    admin, decide = keys.add("a", ["admin"]), keys.add("d", ["decide"])
    given = {"context": [1, 2], "actions": [{"id": "A"}, {"id": "new"}]}
    with local(tmp_path) as served:
        served.put(HOME, PLAIN, headers=bearer(admin))
        assert served.post(HOME + "/decide", given, headers=bearer(decide)).status_code == 422
        assert served.get(HOME, headers=bearer(admin)).json()["arms"] == PLAIN["arms"]


def wait_for(served: Local, secret: str, status: int) -> None:
    for _ in range(50):
        if served.get("/v1/loops", headers=bearer(secret)).status_code == status:
            return
        served.runner.run(asyncio.sleep(0.05))
    raise AssertionError(f"no status {status}")


def test_keys_are_added_and_revoked_while_the_service_runs(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    with local(tmp_path) as served:
        assert served.get("/v1/loops").status_code == 200
        first = keys.add("first", ["read"])
        wait_for(served, "nobody", 401)
        wait_for(served, first, 200)
        keys.revoke("first")
        wait_for(served, first, 401)
        # Without keys it stays closed, also if the file is deleted.
        (tmp_path / "keys.json").unlink()
        served.runner.run(asyncio.sleep(0.3))
        assert served.get("/v1/loops").status_code == 401


@pytest.mark.parametrize(
    "content",
    ["[{", '[{"name": "a", "digest": "zz", "roles": ["admin"]}]', '[{"name": "a"}]', "{}"],
)
def test_a_damaged_file_of_keys_opens_nothing(tmp_path: Path, content: str) -> None:
    secret = KeyFile(tmp_path).add("first", ["read"])
    with local(tmp_path) as served:
        (tmp_path / "keys.json").write_text(content)
        served.runner.run(asyncio.sleep(0.3))
        assert served.get("/v1/loops").status_code == 401
        assert served.get("/v1/loops", headers=bearer(secret)).status_code == 200  # as before
    with pytest.raises(FileError, match="is not a list of keys"):
        application(tmp_path, Options(host="0.0.0.0"))


# -- the file --------------------------------------------------------------------------------------


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "data")
    secret = keys.add("web", ["reward", "decide"], loop="home")
    text = Path(keys.path).read_text()
    assert secret not in text
    assert secret.removeprefix("kh_") not in text
    [record] = json.loads(text)
    assert (record["roles"], record["loop"]) == (["decide", "reward"], "home")
    assert stat.S_IMODE(Path(keys.path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert len({keys.add(f"k{k}", ["read"]) for k in range(5)}) == 5
    assert len(secret) == 46  # 3 letters, and 256 bits in base 64


def test_what_cannot_be_a_key_is_refused(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    keys.add("web", ["read"])
    for name, roles, loop in [
        ("web", ["read"], None),
        ("a b", ["read"], None),
        ("x", [], None),
        ("x", ["write"], None),
        ("x", ["read"], "a/b"),
    ]:
        with pytest.raises(InvalidValue):
            keys.add(name, roles, loop=loop)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="there is no key 'x'; keys: web"):
        keys.revoke("x")
    assert [key.name for key in keys.read()] == ["web"]


def test_a_file_of_keys_that_was_away_is_read_when_it_is_back(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    secret = keys.add("web", ["decide"]).encode()
    keys.refresh()
    assert keys.find(secret) is not None
    path = tmp_path / "keys.json"
    path.rename(tmp_path / "away")
    keys.refresh()
    assert keys.find(secret) is None
    (tmp_path / "away").rename(path)
    keys.refresh()
    assert keys.find(secret) is not None
