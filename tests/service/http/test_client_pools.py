"""Connections of the clients: of one process, one event loop, and until they are closed."""

import asyncio
import copy
import gc
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from keyhole.service import AsyncClient, Client, ServiceError
from keyhole.service.client.pool import Pool
from tests.service.http.serving import PLAIN, threaded

CONTEXT = [1.0, 2.0]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with threaded(tmp_path_factory.mktemp("data")) as found:
        with Client(found) as client:
            client.create("home", PLAIN)
        yield found


@pytest.fixture
def _collected() -> Iterator[None]:
    """Collect sockets that are not closed, whose warnings would be those of a later test."""
    yield
    gc.collect()


# In a process of its own: pytest's has other threads. Without patience, so that nothing is sent
# again after an answer that cannot be read.
FORKS = """
import os, sys
from keyhole.service import Client

client = Client(sys.argv[1], patience=0.0)
names = [f"{os.getpid()}-{k}" for k in range(100)]
assert client.decide("home", [1.0, 2.0], event_id=names[0]).event_id == names[0]
parent = client._pool.get()
children = []
for w in range(4):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for name in names:
                own = f"{w}-{name}"
                assert client.decide("home", [1.0, 2.0], event_id=own).event_id == own
            client.close()
            assert not parent.is_closed
            status = 0
        finally:
            os._exit(status)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
assert client._pool.get() is parent
assert client.decide("home", [1.0, 2.0], event_id="after").event_id == "after"
client.close()
"""

ASYNCHRONOUS_FORKS = """
import asyncio, os, sys
from keyhole.service import AsyncClient

async def work(first):
    for k in range(50):
        name = f"{first}-{os.getpid()}-{k}"
        assert (await client.decide("home", [1.0, 2.0], event_id=name)).event_id == name

async def end():
    await work("child")
    await client.close()

client = AsyncClient(sys.argv[1], patience=0.0)
with asyncio.Runner() as runner:
    runner.run(work("parent"))
    children = []
    for w in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with asyncio.Runner() as own:
                    own.run(end())
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    runner.run(work("after"))
    runner.run(client.close())
"""


# At any line, such as by a KeyboardInterrupt or the time-out of a task queue. An interrupt of the
# garbage collector is ignored by Python.
INTERRUPTS = """
import signal, sys
from keyhole.service import Client

class Interrupt(BaseException):
    pass

def interrupt(*_given):
    raise Interrupt

signal.signal(signal.SIGALRM, interrupt)
client, count = Client(sys.argv[1]), 0
for k in range(300):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0003 + 0.0001 * (k % 30))
            client.decide("home", [1.0, 2.0], event_id=f"alarm-{k}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except Interrupt:
        count += 1
    name = f"interrupted-{k}"
    assert client.decide("home", [1.0, 2.0], event_id=name).event_id == name
assert count > 0
client.close()
"""


@pytest.mark.parametrize("script", [FORKS, ASYNCHRONOUS_FORKS, INTERRUPTS])
def test_no_answer_of_another_request_is_read(url: str, script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script, url], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_threads_that_race_get_one_pool() -> None:
    made: list[object] = []

    def make() -> object:
        time.sleep(0.01)  # until all threads are here
        made.append(object())
        return made[-1]

    pool, found = Pool(make), []
    threads = [threading.Thread(target=lambda: found.append(pool.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) > 1
    assert len(found) == 8
    assert set(found) == {pool.get()}


def test_a_pool_that_is_closed_while_it_is_made_stays_closed() -> None:
    def make() -> str:
        pool.end()
        return "http"

    pool = Pool(make)
    with pytest.raises(ServiceError, match="was closed"):
        pool.get()


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_a_copy_is_another_client_with_the_same_arguments(
    url: str, copied: Callable[[Any], Any]
) -> None:
    with Client(url, key="secret", timeout=3.0, patience=4.0) as client:
        client.decide("home", CONTEXT)
        with copied(client) as other:
            assert other._arguments == client._arguments
            assert other._pool.get() is not client._pool.get()
            assert other.decide("home", CONTEXT, event_id="copy").event_id == "copy"
        assert client.decide("home", CONTEXT, event_id="first").event_id == "first"
    other = copied(AsyncClient(url, key="secret"))
    assert isinstance(other, AsyncClient)
    assert other._arguments["key"] == "secret"


def test_a_closed_client_says_so(url: str) -> None:
    client = Client(url)
    client.loop("home")
    client.close()
    client.close()
    with pytest.raises(ServiceError, match="the client was closed") as error:
        client.loop("home")
    assert error.value.status is None
    unused = Client(url)
    unused.close()
    with pytest.raises(ServiceError, match="the client was closed"):
        unused.loop("home")

    async def work() -> None:
        other = AsyncClient(url)
        await other.loop("home")
        await other.close()
        await other.close()
        with pytest.raises(ServiceError, match="the client was closed"):
            await other.loop("home")

    asyncio.run(work())


# httpx leaves a socket that connects during the close to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_collected")
def test_a_client_that_is_closed_during_requests_says_so(url: str) -> None:
    for _ in range(20):
        # A thread whose socket is closed by another one waits for its time-out.
        client = Client(url, timeout=0.3)
        errors: list[Exception] = []

        def ask(client: Client = client, errors: list[Exception] = errors) -> None:
            try:
                while True:
                    client.loop("home")
            except Exception as error:  # of the library, whatever it is
                errors.append(error)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(random.uniform(0.0, 0.05))
        client.close()
        for thread in threads:
            thread.join()
        assert [str(one) for one in errors if "was closed" not in str(one)] == []
        assert {type(one) for one in errors} == {ServiceError}


def test_an_asynchronous_client_is_for_one_event_loop(url: str) -> None:
    client = AsyncClient(url)
    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(client.loop("home"))
        with pytest.raises(ServiceError, match="an AsyncClient is for one event loop"):
            second.run(client.loop("home"))
        with pytest.raises(ServiceError, match="an AsyncClient is for one event loop"):
            second.run(client.close())
        first.run(client.loop("home"))
        first.run(client.close())


def test_cancelled_requests_leave_no_answers_to_others(url: str) -> None:
    async def work() -> None:
        draws = random.Random(1)
        async with AsyncClient(url) as client:

            async def one(name: str) -> None:
                assert (await client.decide("home", CONTEXT, event_id=name)).event_id == name
                assert (await client.reward("home", name, 0.25)).total == 0.25

            tasks = [asyncio.create_task(one(f"cancel-{k}")) for k in range(200)]
            for task in tasks[::2]:
                asyncio.get_running_loop().call_later(draws.uniform(0.0, 0.3), task.cancel)
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert [end for end in ends if not isinstance(end, asyncio.CancelledError | None)] == []
            cancelled = sum(isinstance(end, asyncio.CancelledError) for end in ends)
            assert 0 < cancelled <= 100
            # More than the pool's 100 connections: none is lost to a cancelled request.
            await asyncio.gather(*(one(f"then-{k}") for k in range(150)))

    asyncio.run(work())


def test_an_interrupt_makes_the_next_request_use_another_pool(url: str) -> None:
    class Interrupt(BaseException):
        """Such as a KeyboardInterrupt."""

    class Interrupted(httpx.BaseTransport):
        def handle_request(self, _request: httpx.Request) -> httpx.Response:
            raise Interrupt

    with Client(url) as client:
        whole = client._pool
        client._pool = Pool(lambda: httpx.Client(**client._options, transport=Interrupted()))
        before = client._pool.get()
        with pytest.raises(Interrupt):
            client.loop("home")
        assert client._pool.get() is not before
        client._pool = whole
