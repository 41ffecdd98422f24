"""The clients: typed answers, and retries that count once."""

import asyncio
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from keyhole.errors import InvalidValue
from keyhole.service import AsyncClient, Client, KeyFile, ServiceError
from keyhole.service.client.awaiting import Bound
from keyhole.service.client.pool import Pool
from tests.service.http.serving import NAMED, PLAIN, threaded


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


def test_events_are_forgotten_and_probabilities_draw_nothing(url: str) -> None:
    with Client(url) as client:
        client.create("forgets", PLAIN)
        before = client.loop("forgets").version
        found = client.probabilities("forgets", np.array([1.0, 2.0]), exclude=["A"])
        assert found.probabilities == {"B": 0.5, "C": 0.5}
        assert found.version == before == client.loop("forgets").version
        one = client.probabilities("forgets", [1.0, 2.0], actions=["A", {"id": "B"}])
        assert list(one.probabilities) == ["A", "B"]
        with pytest.raises(InvalidValue, match="actions must have an order"):
            client.probabilities("forgets", [1.0, 2.0], actions={"A", "B"})
        client.decide("forgets", [1.0, 2.0], event_id="a/b")
        client.reward("forgets", "a/b", 1.0)
        client.forget("forgets", "a/b")
        client.forget("forgets", "a/b")
        assert sum(client.loop("forgets").learned.values()) == 0
        with pytest.raises(ServiceError, match="was forgotten"):
            client.event("forgets", "a/b")
        with pytest.raises(ServiceError, match="no event") as unknown:
            client.forget("forgets", "nope")
        assert unknown.value.status == 404


def test_the_asynchronous_client_forgets_and_shows_probabilities(url: str) -> None:
    async def work() -> None:
        async with AsyncClient(url) as client:
            await client.create("drops", PLAIN)
            decided = await client.decide("drops", [1.0, 2.0], actions=["A", "B"])
            found = await client.probabilities("drops", [1.0, 2.0], actions=["A", "B"])
            assert found.probabilities == decided.probabilities
            await client.forget("drops", decided.event_id)
            await client.forget("drops", decided.event_id)
            with pytest.raises(ServiceError, match="was forgotten"):
                await client.event("drops", decided.event_id)
            with pytest.raises(ServiceError, match="no event"):
                await client.forget("drops", "nope")

    asyncio.run(work())


def test_an_event_is_forgotten_once_if_the_answer_is_lost(url: str) -> None:
    client, transport = flaky(url, [])
    with client:
        client.create("lost", PLAIN)
        client.decide("lost", [1.0, 2.0], event_id="e1")
        before = client.loop("lost").version
        transport.losses = [httpx.ReadError("lost"), 503]
        client.forget("lost", "e1")
        assert client.loop("lost").version == before + 1


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
    client._pool = Pool(lambda: httpx.Client(**client._options, transport=transport))
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
    client, transport = flaky(url, [httpx.ReadError("lost")] * 20, patience=0.3)
    with client, pytest.raises(ServiceError, match=r"no answer, .*: ReadError: lost") as error:
        client.loop("home")
    assert transport.sent > 2
    assert f"sent {transport.sent} times in 0." in str(error.value)
    assert error.value.status is None
    client, transport = flaky(url, [502], patience=0.0)
    with client, pytest.raises(ServiceError, match="502: a proxy's page"):
        client.loop("home")
    assert transport.sent == 1

    async def nobody() -> None:
        async with AsyncClient("http://127.0.0.1:9", patience=0.1) as lonely:
            with pytest.raises(ServiceError, match=r"no answer, .*: ConnectError"):
                await lonely.loop("home")

    asyncio.run(nobody())


class Restarting(httpx.AsyncHTTPTransport):
    """A service that cannot be reached for some time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.until = time.monotonic() + seconds

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if time.monotonic() < self.until:
            raise httpx.ConnectError("refused")
        return await super().handle_async_request(request)


def test_clients_wait_for_a_service_that_restarts(url: str) -> None:
    async def asynchronous() -> None:
        async with AsyncClient(url) as client:
            http = httpx.AsyncClient(**client._options, transport=Restarting(2.0))
            client._pool = Pool(lambda: Bound(http, asyncio.get_running_loop()))
            await client.create("again", PLAIN)
            assert (await client.decide("again", [1.0, 2.0])).mode == "online"

    asyncio.run(asynchronous())
    # With its default the other one waits as long: pauses of the same class.
    with Client(url) as client:
        attempts, pauses = client.attempts(), 0.0
        for _ in range(12):
            pause = attempts.pause()
            assert pause is not None
            pauses += pause
        assert 3.0 < pauses < 14.0


def test_numbers_and_arrays_of_numpy_are_sent_as_plain_ones(url: str) -> None:
    with Client(url) as client:
        client.create("plain", PLAIN)
        one = client.decide("plain", np.array([1.0, 2.0]), event_id="n-1")
        assert client.decide("plain", [1.0, 2.0], event_id="n-1") == one
        client.decide("plain", [np.float64(1.0), np.int64(2)], event_id="n-2")
        client.decide("plain", [np.float32(1.0), np.int8(2)], event_id=str(np.str_("n-3")))
        assert client.reward("plain", "n-1", np.float64(0.5)).total == 0.5
        assert client.reward("plain", "n-2", np.int64(2)).total == 2.0
        client.create("named", NAMED)
        given = {"hour": np.float64("nan"), "device": np.str_("mobile")}
        made = client.decide("named", given, event_id="n-4")
        # NaN is a missing entry, and so the same request as None.
        assert client.decide("named", {"hour": None, "device": "mobile"}, event_id="n-4") == made
        assert (
            client.decide("named", {"hour": math.nan, "device": "mobile"}, event_id="n-4") == made
        )


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32("nan"), "1", None])
def test_a_reward_must_be_a_finite_number(url: str, value: Any) -> None:
    with Client(url) as client, pytest.raises(InvalidValue, match="value must be a finite number"):
        client.reward("plain", "n-1", value)
    with Client(url) as client, pytest.raises(InvalidValue, match=r"context\[0\] must be a finite"):
        client.decide("plain", [math.inf, 1.0])
    with Client(url) as client, pytest.raises(InvalidValue, match="got object"):
        client.decide("plain", {"hour": object()})


@pytest.mark.parametrize("context", [{1.0, 2.0}, frozenset({1.0}), {"a": {1.0}}, [[{1.0}]]])
def test_a_set_has_no_order_and_is_refused(context: Any) -> None:
    with Client() as client:
        with pytest.raises(InvalidValue, match=r"context.* must have an order"):
            client.decide("home", context)
        with pytest.raises(InvalidValue, match="actions must have an order"):
            client.decide("home", [1.0, 2.0], actions={"A", "B"})


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("url", ["localhost:8109", "127.0.0.1", "http://", "ftp://a", "http://a:b"])
def test_an_address_without_a_scheme_is_refused_at_once(kind: Any, url: str) -> None:
    with pytest.raises(InvalidValue, match="url must be an address such as 'http://localhost"):
        kind(url)


def test_a_key_is_sent(tmp_path: Path) -> None:
    secret = KeyFile(tmp_path).add("all", ["admin"])
    with threaded(tmp_path) as found:
        with Client(found, key=secret) as client:
            assert client.create("home", PLAIN).version == 2
        with Client(found) as stranger, pytest.raises(ServiceError, match="401: a key is needed"):
            stranger.loop("home")
