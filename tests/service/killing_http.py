"""Servers that are killed while clients ask them over HTTP."""

import json
import random
import re
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import Any

from keyhole.service import Service
from tests.service.driving import Answer, Ask, Load, answered
from tests.service.history import History, check

CLIENTS = 4


def route(ask: Ask) -> tuple[str, str, Any]:
    """Return method, path and content of an ask."""
    do, path = ask["do"], f"/v1/loops/{ask['loop']}"
    if do == "create":
        return "PUT", path, ask["settings"]
    if do == "decide":
        return "POST", f"{path}/decide", ask["request"]
    if do == "arms":
        return "POST", f"{path}/arms", {"add": ask["arms"]}
    event = f"{path}/events/{ask['event']}"
    if do == "reward":
        return "POST", f"{event}/reward", {"value": ask["value"], "reward_id": ask["id"]}
    return ("DELETE", event, None) if do == "forget" else ("POST", f"{event}/activate", None)


def sent(connection: HTTPConnection, ask: Ask) -> Answer:
    """Return the answer of a server; an ask that it refuses is answered too.

    Parameters
    ----------
    connection : HTTPConnection
        A connection to the server.
    ask : dict
        The ask.
    """
    method, path, content = route(ask)
    connection.request(method, path, None if content is None else json.dumps(content))
    response = connection.getresponse()
    body = json.loads(response.read())
    if response.status >= 400:
        return {"refused": str(response.status), "is_final": response.status < 500}
    answer: Answer = body
    if ask["do"] == "decide":
        answer["is_replay"] = response.getheader("Idempotent-Replay") == "true"
    return answer


def ask_on(address: str, load: Load, begin: list[Ask], history: History) -> None:
    """Ask until the server is gone.

    Parameters
    ----------
    address : str
        Host and port.
    load : Load
        What is asked.
    begin : list of dict
        What is asked first.
    history : list of (ask, answer)
        Where to write down what was asked and answered.
    """
    connection = HTTPConnection(address, timeout=30)
    asks = list(begin)
    while True:
        ask = asks.pop(0) if asks else load.next()
        try:
            answer = sent(connection, ask)
        except (OSError, HTTPException, ValueError):  # a body that ends in the middle
            history.append((ask, None))
            return
        history.append((ask, answer))


def killed(folder: str, seed: int, seconds: float) -> History:
    """Serve a folder, kill the server after some time, and return what was asked and answered.

    Parameters
    ----------
    folder : str
        The folder.
    seed : int
        What is asked follows from it.
    seconds : float
        The time until the kill.
    """
    command = [sys.executable, "-m", "keyhole", "serve", "--data", folder, "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    found = re.search(r"http://(\S+)", server.stdout.readline())
    assert found is not None, "the server did not start"
    histories: list[History] = [[] for _ in range(CLIENTS)]
    threads = []
    for k, history in enumerate(histories):
        load = Load(seed * CLIENTS + k, f"h{seed}.{k}")
        arguments = (found[1], load, load.begin() if k == 0 else [], history)
        threads.append(threading.Thread(target=ask_on, args=arguments))
        threads[-1].start()
        if k == 0:  # which makes the loops
            while len(history) < 3 and threads[-1].is_alive():
                time.sleep(0.005)
    time.sleep(seconds)
    server.kill()
    server.communicate()
    for thread in threads:
        thread.join()
    return [one for history in histories for one in history]


def survive(folder: str, kills: int, seed: int, longest: float = 0.5) -> int:
    """Kill servers under load; check after each kill, ask again, and return what was acknowledged.

    Parameters
    ----------
    folder : str
        The folder.
    kills : int
        How many servers are killed.
    seed : int
        The seed of the first.
    longest : float, default 0.5
        The time until a kill, at most.
    """
    rng = random.Random(seed)
    history: History = []
    for k in range(kills):
        history += killed(folder, seed * 10_000 + k, rng.uniform(0.0, longest))
        with Service(folder) as service:
            check(folder, history, service)
            lost = [ask for ask, answer in history if answer is None]
            history = [one for one in history if one[1] is not None]
            history += [(ask, answered(service, ask)) for ask in lost]
            check(folder, history, service)
    return sum("refused" not in (answer or {}) for _, answer in history)
