"""A process that drives a service under load until it is killed, and what its parent sees of it."""

import itertools
import json
import os
import random
import signal
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from time import sleep
from typing import Any

from keyhole.service import Service
from tests.service.driving import Answer, Ask, Load, answered, drive
from tests.service.history import History, check

# Forked from a process that has loaded everything and has one thread: some milliseconds each.
FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.service.killing"])


def work(folder: str, seed: int, pipe: Any) -> None:
    """Drive a service, and tell a pipe of every ask and every answer. Never ends by itself.

    Parameters
    ----------
    folder : str
        The folder of the service.
    seed : int
        What is asked follows from it.
    pipe : Connection
        The end of a pipe to write to.
    """
    service = Service(folder)
    load = Load(seed, f"k{seed}")

    def tell(ask: Ask, answer: Answer | None) -> None:
        # One line in one write, below the size that a pipe takes whole or not at all.
        line = json.dumps([ask, answer]).encode() + b"\n"
        assert len(line) < 4096
        os.write(pipe.fileno(), line)

    def listed() -> Iterator[Ask]:
        yield from load.begin()
        for _ in count():
            yield load.next()

    drive(service, listed(), tell, seed)


def killed(folder: str, seed: int, seconds: float) -> History:
    """Run a process for some time, kill it, and return what it asked and was answered.

    Parameters
    ----------
    folder : str
        The folder of the service.
    seed : int
        What it asks follows from it.
    seconds : float
        The time after the first ask until it is killed.
    """
    reader, writer = FORKS.Pipe(duplex=False)
    process: ForkServerProcess = FORKS.Process(target=work, args=(folder, seed, writer))
    process.start()
    writer.close()
    with os.fdopen(os.dup(reader.fileno()), "rb") as pipe:
        reader.close()
        first = pipe.readline()
        assert first, "the process ended before it asked anything"
        sleep(seconds)
        assert process.is_alive(), "the process ended by itself"
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        lines = [first, *pipe.readlines()]
    return paired([json.loads(line) for line in lines if line.endswith(b"\n")])


def paired(told: list[tuple[Ask, Answer | None]]) -> History:
    """Return each ask with its answer, or with None if none came.

    Parameters
    ----------
    told : list
        Asks with None, in order, and the same asks later with their answers.
    """
    waiting: list[Ask] = []
    history: History = []
    for ask, answer in told:
        if answer is None:
            waiting.append(ask)
        else:
            waiting.remove(ask)
            history.append((ask, answer))
    return history + [(ask, None) for ask in waiting]


def acknowledged(history: History) -> int:
    """Return how many requests were answered, and not refused."""
    return sum(1 for _, answer in history if answer and "refused" not in answer)


def survive(folder: str, kills: int, seed: int, longest: float = 0.1, enough: int = 0) -> History:
    """Kill a process under load again and again; check after each kill, and ask again.

    Parameters
    ----------
    folder : str
        The folder of the service.
    kills : int
        How many processes are killed.
    seed : int
        The seed of the first.
    longest : float, default 0.1
        The time until a kill, at most.
    enough : int, default 0
        Go on until this many requests were acknowledged: how many one process gets to depends on
        the machine.
    """
    rng = random.Random(seed)
    history: History = []
    for k in itertools.count():
        if k >= kills and acknowledged(history) >= enough:
            break
        history += killed(folder, seed * 100_000 + k, rng.uniform(0.0, longest))
        service = Service(folder)
        check(folder, history, service)
        # Those without an answer are asked again, and get the answer that stands.
        lost = [ask for ask, answer in history if answer is None]
        history = [one for one in history if one[1] is not None]
        history += [(ask, answered(service, ask)) for ask in lost]
        check(folder, history, service)
        service.close()
    return history
