"""A simulation that is stopped: in a real terminal, with a folder to resume from, on a cluster."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_limits

import keyhole as kh
from keyhole.errors import FileUnusable
from keyhole.lab import studies
from keyhole.lab.simulation import run as module
from keyhole.lab.simulation.plan import Plan
from keyhole.lab.simulation.replication import replicate
from keyhole.lab.studies import running, study
from tests.worlds import patients

RECIPE = kh.RandomLinearWorld(n_arms=4, context_dim=3, dim=5)
POLICIES = {"thompson": kh.ThompsonSampling(v="oracle"), "greedy": kh.Greedy()}


def run(**settings: Any) -> xr.Dataset:
    usual: dict[str, Any] = {"horizon": 2000, "replications": 6, "seed": 5, "progress": False}
    return kh.simulate(RECIPE, POLICIES, **{**usual, **settings})


# -- resuming from a folder -----------------------------------------------------------------------


def test_resuming_does_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run()
    assert run(resume=tmp_path / "kept", replications=3).identical(
        expected.isel(replication=range(3))
    )
    (tmp_path / "kept" / "replication-000001.npz").unlink()
    done = []

    def watched(plan: Any, number: int, *others: Any) -> Any:
        done.append(number)
        return replicate(plan, number, *others)

    monkeypatch.setattr(module, "replicate", watched)
    assert run(resume=tmp_path / "kept").identical(expected)
    assert sorted(done) == [1, 3, 4, 5]
    assert run(resume=tmp_path / "kept").identical(expected)
    assert len(done) == 4


def test_another_simulation_is_not_resumed(tmp_path: Path) -> None:
    run(resume=tmp_path / "kept", horizon=100)
    for settings in (
        {"horizon": 101},
        {"horizon": 100, "seed": 6},
        {"horizon": 100, "checkpoints": 3},
    ):
        with pytest.raises(kh.InvalidValue, match="differs in"):
            run(resume=tmp_path / "kept", **settings)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(kh.InvalidValue, match="resume must be a new folder"):
        run(resume=tmp_path / "mine")


TORN = ("", "{", "[1]", "\x00", "[" * 100_000)


@pytest.mark.parametrize("text", TORN, ids=range(len(TORN)))
def test_a_damaged_plan(tmp_path: Path, text: str) -> None:
    run(resume=tmp_path, horizon=100)
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(kh.FileError, match="damaged"):
        run(resume=tmp_path, horizon=100)
    with pytest.raises(kh.InvalidValue, match="resume must be a folder, got the file"):
        run(resume=tmp_path / "plan.json")


@pytest.mark.parametrize("text", [None, *TORN], ids=range(1 + len(TORN)))
def test_a_plan_that_was_never_finished_is_written_anew(tmp_path: Path, text: str | None) -> None:
    """A kill while it is written leaves a part, or a torn file, and no replication yet."""
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    (tmp_path / "plan.json.0.part").write_text("{")
    assert run(resume=tmp_path, horizon=100).identical(run(horizon=100))
    assert not list(tmp_path.glob("*.part"))
    assert run(resume=tmp_path, horizon=100).identical(run(horizon=100))


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(kh.FileError, match="file/kept"):
        run(resume=tmp_path / "file" / "kept")
    (tmp_path / "kept" / "plan.json").mkdir(parents=True)
    with pytest.raises(kh.FileError, match="kept"):
        run(resume=tmp_path / "kept")


def edited(path: Path, **changes: Any) -> None:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays.update(changes)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {"regret": None},
        {"pulls": None},
        {"number": None},
        {"number": np.array([2, 2])},
        {"number": np.array("2")},
        {"number": np.array(2.5)},
        {"regret": np.zeros((2, 3))},
        {"regret": np.full((2, 101), "x")},
        {"pulls": np.zeros((2, 101))},
        {"pulls": np.full((2, 101, 4), np.nan)},
        {"pulls": np.full((2, 101, 4), 0.5)},
        {"error": np.full((2, 101, 4), -1.0)},
        {"correct": np.zeros((2, 101))},
        {"more": np.zeros(3)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_replication_of_wrong_content(tmp_path: Path, changes: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"horizon": 101, "checkpoints": 101}
    run(resume=tmp_path, **settings)
    path = tmp_path / "replication-000002.npz"
    edited(path, **changes)
    with pytest.raises(kh.FileError, match="delete it"):
        run(resume=tmp_path, **settings)
    path.unlink()
    assert run(resume=tmp_path, **settings).identical(run(**settings))


def test_a_full_disk_costs_a_study_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged file makes a study simulate a cell anew; one that cannot be written does not."""
    cell = studies.STUDIES["fig1"].cells(studies.Settings(quick=True))[0]
    kept = running.cell_folder(cell, tmp_path)
    kept.mkdir(parents=True)
    (kept / "finished").touch()

    def fails(*_: Any, **__: Any) -> Any:
        calls.append(1)
        raise error("no space left on device")

    monkeypatch.setattr(study, "simulate", fails)
    calls: list[int] = []
    for error, times, there in ((FileUnusable, 1, True), (kh.FileError, 2, False)):
        calls.clear()
        with pytest.raises(error):
            running._simulated(cell, tmp_path, None, None, lambda _: None)
        assert (len(calls), (kept / "finished").exists()) == (times, there)


def test_replications_of_a_world_with_answers(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"horizon": 50, "replications": 2, "seed": 1}
    made = kh.simulate(patients(), kh.Greedy(), **settings)
    for _ in range(2):
        kept = kh.simulate(patients(), kh.Greedy(), resume=tmp_path, **settings)
        assert kept.identical(made)
    # Of one file the right answers are gone: it might be that of a world without them.
    edited(tmp_path / "replication-000001.npz", correct=None, best_correct=None)
    with pytest.raises(kh.FileError, match=r"replication-000001\.npz .*delete it"):
        kh.simulate(patients(), kh.Greedy(), resume=tmp_path, **settings)


def test_a_file_of_another_replication(tmp_path: Path) -> None:
    run(resume=tmp_path, horizon=100)
    first, second = (tmp_path / f"replication-00000{i}.npz" for i in (0, 1))
    second.write_bytes(first.read_bytes())
    with pytest.raises(kh.FileError, match="not the file of replication 1"):
        run(resume=tmp_path, horizon=100)


def test_a_policy_whose_rule_has_changed_is_not_resumed(tmp_path: Path) -> None:
    class Mine(kh.Policy):
        strength = 1.0

        @property
        def rule(self) -> kh.Rule:
            return kh.Rule(optimism=self.strength)

    settings: dict[str, Any] = {"horizon": 10, "replications": 1, "seed": 1, "resume": tmp_path}
    kh.simulate(RECIPE, Mine(), **settings)
    Mine.strength = 2.0
    with pytest.raises(kh.InvalidValue, match="differs in policies"):
        kh.simulate(RECIPE, Mine(), **settings)


def test_a_damaged_replication_says_what_to_do(tmp_path: Path) -> None:
    run(resume=tmp_path, horizon=100)
    path = tmp_path / "replication-000002.npz"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(kh.FileError, match="delete it"):
        run(resume=tmp_path, horizon=100)


@pytest.mark.parametrize("workers", [1, 3])
def test_what_was_finished_survives_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """An error in one replication ends the simulation, and is not swallowed."""
    begun = []

    def fails(plan: Any, number: int, *others: Any) -> Any:
        begun.append(number)
        if number == 4:
            raise ZeroDivisionError("the fifth one fails")
        return replicate(plan, number, *others)

    with monkeypatch.context() as patch:
        patch.setattr(module, "replicate", fails)
        with pytest.raises(ZeroDivisionError):
            run(resume=tmp_path, workers=workers)
    assert len(begun) == len(set(begun))
    kept = {int(path.stem[-6:]) for path in tmp_path.glob("replication-*.npz")}
    # The others stop at the end of a block: all is there but what they were at just then.
    assert kept <= set(begun) - {4}
    assert len(set(begun) - {4} - kept) < workers
    assert run(resume=tmp_path).identical(run())


def test_an_interrupt_carries_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run()

    def interrupted(plan: Any, number: int, *others: Any) -> Any:
        if number == 2:
            raise KeyboardInterrupt
        return replicate(plan, number, *others)

    monkeypatch.setattr(module, "replicate", interrupted)
    with pytest.raises(kh.SimulationInterrupted) as caught:
        run(workers=1)
    runs = caught.value.runs
    assert runs is not None
    assert {0, 1} <= set(runs.replication.values.tolist())
    assert 2 not in runs.replication
    assert runs.identical(expected.sel(replication=runs.replication))


# -- Ctrl-C in a real terminal --------------------------------------------------------------------

LONG = """
import sys, time
import keyhole as kh
recipe = kh.RandomLinearWorld(n_arms=4, context_dim=3, dim=5)
policies = {"thompson": kh.ThompsonSampling(v="oracle"), "greedy": kh.Greedy()}
try:
    kh.simulate(recipe, policies, horizon=60_000, replications=200, seed=5, resume=sys.argv[1])
except kh.SimulationInterrupted as stopped:
    print("STOPPED", stopped, "at", time.time(), flush=True)
"""


def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    """A bar with the time left; Ctrl-C ends it at once; what is on disk is whole and is used."""
    folder = tmp_path / "kept"
    main, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", LONG, str(folder)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        # Where the tests themselves run in the background, Ctrl-C is ignored from the start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    deadline = time.monotonic() + 120
    while len(list(folder.glob("replication-*.npz"))) < 3:
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pressed = time.time()
    child.send_signal(signal.SIGINT)
    shown = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the terminal's end of file
            break
        if not part:
            break
        shown += part
    assert child.wait(timeout=30) == 0
    os.close(main)

    text = shown.decode()
    assert "simulating 200 x 60,000 rounds" in text
    assert re.search(r"\d+%", text)
    assert re.search(r"\d:\d\d:\d\d", text)  # the time left
    stopped = re.search(r"STOPPED interrupted with (\d+) replications finished at ([\d.]+)", text)
    assert stopped is not None
    assert float(stopped[2]) - pressed < 10
    files = sorted(folder.glob("replication-*.npz"))
    assert len(files) == int(stopped[1]) >= 3
    assert not list(folder.glob("*.part"))

    # Going on with only those that are there gives what an uninterrupted run gives.
    numbers = [int(path.stem.split("-")[1]) for path in files]
    few = max(numbers[:3]) + 1
    settings: dict[str, Any] = {"horizon": 60_000, "replications": few}
    assert run(resume=folder, **settings).identical(run(**settings))


TWICE = """
import os, signal, sys, threading, time
import keyhole as kh
recipe = kh.RandomLinearWorld(n_arms=4, context_dim=3, dim=5)
first, pause = [], float(sys.argv[1])

def press():
    first.append(time.monotonic())
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(pause)

done = []
def tick(rounds):
    done.append(rounds)
    if sum(done) > 3 * 20_000 and not first:
        first.append(0)
        threading.Thread(target=press).start()

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    kh.simulate(recipe, kh.Greedy(), horizon=20_000, replications=10_000, seed=5, progress=tick)
except kh.SimulationInterrupted as stopped:
    kept = stopped.runs.sizes["replication"]
    time.sleep(0.4)  # as long as it takes to save them
    print("KEPT", kept)
time.sleep(1.0)
try:
    signal.raise_signal(signal.SIGINT)
    time.sleep(1.0)
except KeyboardInterrupt:
    print("STILL WORKS", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.1, 0.3])
def test_a_second_ctrl_c_loses_nothing(pause: float) -> None:
    """Three presses in a row are one; a later one is one of its own."""
    shown = subprocess.check_output([sys.executable, "-c", TWICE, str(pause)], text=True)
    kept = re.search(r"KEPT (\d+)", shown)
    assert kept is not None
    assert int(kept[1]) >= 2
    assert "STILL WORKS True" in shown


def test_a_handler_of_ones_own_is_left_alone() -> None:
    def mine(*_: Any) -> None:
        raise AssertionError("nobody has pressed it")

    seen: list[Any] = []
    before = signal.signal(signal.SIGINT, mine)
    try:
        run(horizon=10, progress=lambda _: seen.append(signal.getsignal(signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert set(seen) == {mine}
    run(horizon=10)
    assert signal.getsignal(signal.SIGINT) is before


# -- a Dask cluster -------------------------------------------------------------------------------


def test_a_dask_cluster_that_loses_a_worker() -> None:
    """Two worker processes, one of them killed in the middle: the same result, complete."""
    from distributed import Client, LocalCluster

    settings: dict[str, Any] = {"horizon": 20_000, "replications": 40}
    expected = run(**settings)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 2
        assert os.getpid() not in pids
        executor = client.get_executor()
        finished = 0

        def kill_in_the_middle(rounds: int) -> None:
            nonlocal finished
            finished += rounds // settings["horizon"]
            if finished == 5:
                os.kill(pids[0], signal.SIGKILL)

        runs = run(executor=executor, progress=kill_in_the_middle, **settings)
        after = set(client.run(os.getpid).values())
        assert pids[0] not in after
    assert finished == 40
    assert runs.identical(expected)


# -- memory ---------------------------------------------------------------------------------------

# The system's own maximum is handed on from the process of the tests, however large that is.
TEN_MILLION = """
import re
import keyhole as kh
world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
policy = kh.ThompsonSampling(v="oracle")
runs = kh.simulate(world, policy, horizon=10_000_000, replications=1, seed=1)
assert int(runs.pulls.isel(time=-1).sum()) == 10_000_000
print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
"""


def test_ten_million_rounds_take_less_than_a_gigabyte() -> None:
    kilobytes = int(subprocess.check_output([sys.executable, "-c", TEN_MILLION], text=True))
    assert kilobytes < 1_000_000


def test_memory_does_not_grow_with_the_horizon() -> None:
    """What a replication keeps is decided by its checkpoints."""
    sizes = [
        sum(int(array.nbytes) for array in replicate(plan, 0).values())
        for plan in (Plan.of(RECIPE, kh.Greedy(), horizon, 1, 10) for horizon in (100, 10_000))
    ]
    assert sizes[0] == sizes[1]


def test_nothing_is_shown_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    kh.simulate(RECIPE, kh.Greedy(), horizon=100, replications=2, seed=1)
    shown = capfd.readouterr()
    assert shown.out == shown.err == ""
    kh.simulate(RECIPE, kh.Greedy(), horizon=100, replications=2, seed=1, progress=True)
    assert "simulating 2 x 100 rounds" in capfd.readouterr().err


def test_results_do_not_depend_on_the_threads_of_blas() -> None:
    """Also where contexts are not normal, and rounds are products of rows and matrices."""
    recipe = kh.RandomLinearWorld(
        n_arms=6,
        context_dim=40,
        dim=30,
        shared_context=True,
        sensing_distribution="student-t",
    )
    runs = []
    for n in (1, 2):
        with threadpool_limits(limits=n, user_api="blas"):
            runs.append(kh.simulate(recipe, kh.Greedy(), horizon=300, replications=2, seed=1))
    assert runs[0].identical(runs[1])


def test_an_interrupt_while_work_is_handed_out() -> None:
    """What is not begun is called off, and what is finished is kept."""

    class Impatient(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **_: Any) -> Future[Any]:
            if args[1] == 4:
                time.sleep(1.0)  # the first ones are finished by now
                raise KeyboardInterrupt
            return super().submit(fn, *args)

    with Impatient(1) as executor, pytest.raises(kh.SimulationInterrupted) as caught:
        run(executor=executor, horizon=10)
    runs = caught.value.runs
    assert runs is not None
    assert runs.sizes["replication"] == 4


def test_many_more_replications_than_are_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT", 3)
    assert run(horizon=50, replications=20).sizes["replication"] == 20
