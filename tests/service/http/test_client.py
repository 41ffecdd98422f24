"""The clients: typed answers, and retries that count once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from keyhole.service import AsyncClient, Client, KeyFile, ServiceError
from tests.service.http.serving import PLAIN, threaded


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with threaded(tmp_path_factory.mktemp("data")) as found:
        yield found


def test_a_client_decides_and_rewards(url: str) -> None:
    with Client(url) as client:
        assert client.create("home", PLAIN).arms == ["A", "B", "C"]
        decided = client.decide("home", [1.0, 2.0], exclude=["A"], actions=["A", {"id": "B"}])
        assert decided.action == "B"
        assert client.reward("home", decided.event_id, 1.0, reward_id="x").status == "counted"
        assert client.reward("home", decided.event_id, 1.0, reward_id="x").status == "duplicate"
        deferred = client.decide("home", [1.0, 2.0], event_id="a/b", defer=True)
        assert client.event("home", "a/b").state == "deferred"
        client.activate("home", deferred.event_id)
        assert client.event("home", "a/b").state == "open"
        assert client.loop("home").learned["B"] >= 1


def test_errors_have_their_status_and_id(url: str) -> None:
    with Client(url) as client:
        client.create("home", PLAIN)
        with pytest.raises(ServiceError, match=r"404: .*no event 'nope'") as unknown:
            client.event("home", "nope")
        assert unknown.value.status == 404
        assert unknown.value.request_id
        with pytest.raises(ServiceError, match="2 numbers") as wrong:
            client.decide("home", [1.0])
        assert wrong.value.status == 422


def test_the_asynchronous_client_does_the_same(url: str) -> None:
    async def work() -> None:
        async with AsyncClient(url) as client:
            await client.create("other", PLAIN)
            decided = await asyncio.gather(
                *(client.decide("other", [1.0, float(k)], event_id=f"e{k}") for k in range(20))
            )
            assert [one.event_id for one in decided] == [f"e{k}" for k in range(20)]
            for one in decided:
                assert (await client.reward("other", one.event_id, 1.0)).status == "counted"
            await client.activate("other", "e1")
            assert (await client.event("other", "e1")).learned == 1.0
            assert sum((await client.loop("other")).learned.values()) == 20
            with pytest.raises(ServiceError, match="no event"):
                await client.event("other", "nope")

    asyncio.run(work())


class Flaky(httpx.BaseTransport):
    """A connection that loses answers after the service got the request."""

    def __init__(self, losses: list[Any]) -> None:
        self.inner, self.losses, self.sent = httpx.HTTPTransport(), losses, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        response = self.inner.handle_request(request)
        if not self.losses:
            return response
        response.read()
        response.close()
        loss = self.losses.pop(0)
        if isinstance(loss, int):
            return httpx.Response(loss, text="a proxy's page")
        raise loss

    def close(self) -> None:
        self.inner.close()


def flaky(url: str, losses: list[Any], **given: Any) -> tuple[Client, Flaky]:
    client = Client(url, **given)
    transport = Flaky(losses)
    client._http.close()
    client._http = httpx.Client(**client._options, transport=transport)
    return client, transport


def test_a_lost_answer_is_asked_for_again_and_counts_once(url: str) -> None:
    client, transport = flaky(url, [httpx.ReadError("lost"), 503, httpx.ReadTimeout("late")])
    with client:
        client.create("flaky", PLAIN)
        transport.sent, transport.losses = 0, [httpx.ReadError("lost"), 503]
        decided = client.decide("flaky", [1.0, 2.0])
        assert transport.sent == 3
        before = client.loop("flaky").version
        transport.losses = [httpx.ReadError("lost"), httpx.ReadTimeout("late")]
        assert client.reward("flaky", decided.event_id, 1.0).status == "duplicate"
        assert client.loop("flaky").version == before + 1
        assert sum(client.loop("flaky").learned.values()) == 1


def test_after_the_last_attempt_the_reason_is_raised(url: str) -> None:
    client, transport = flaky(url, [httpx.ReadError("lost")] * 2, retries=1)
    with client, pytest.raises(ServiceError, match="no answer: ReadError: lost") as error:
        client.loop("home")
    assert (transport.sent, error.value.status) == (2, None)
    client, _ = flaky(url, [502, 502], retries=1)
    with client, pytest.raises(ServiceError, match="502: a proxy's page"):
        client.loop("home")

    async def nobody() -> None:
        async with AsyncClient("http://127.0.0.1:9", retries=1) as lonely:
            with pytest.raises(ServiceError, match="no answer: ConnectError"):
                await lonely.loop("home")

    asyncio.run(nobody())


def test_a_key_is_sent(tmp_path: Path) -> None:
    secret = KeyFile(tmp_path).add("all", ["admin"])
    with threaded(tmp_path) as found:
        with Client(found, key=secret) as client:
            assert client.create("home", PLAIN).version == 2
        with Client(found) as stranger, pytest.raises(ServiceError, match="401: a key is needed"):
            stranger.loop("home")
