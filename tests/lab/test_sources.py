"""Kept results are used again only by the sources that made them."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import keyhole as kh
from keyhole.lab.simulation import sources, store
from keyhole.lab.studies import STUDIES, Job, Settings, outdated, run, running, study

TINY = Settings(quick=True, horizon=100, replications=2)
SIMULATES = """
import sys
import keyhole as kh
world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)
runs = kh.simulate(world, kh.Greedy(), horizon=20, replications=2, seed=1, resume=sys.argv[1])
print(kh.__file__)
"""


def tiny() -> Job:
    return Job(STUDIES["fig2"], TINY, STUDIES["fig2"].cells(TINY))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that is no checkout, so with the compiled kernels that it has."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(sources.PACKAGE, tmp_path / "keyhole", ignore=ignored)


def test_a_digest_is_that_of_the_sources(package: Path) -> None:
    """Not of where they are, of compiled files, of line endings or of the command line."""
    before = sources.digest(sources.PACKAGE)
    assert sources.digest(package) == before
    assert sources.SOURCES.endswith(before[:12])
    choice = package / "core" / "choice.py"
    choice.write_bytes(choice.read_bytes().replace(b"\n", b"\r\n"))
    (package / "core" / "kernels" / "compiled" / "more.so").write_bytes(b"x")
    (package / "cli" / "reproduce.py").write_text("")
    assert sources.digest(package) == before


@pytest.mark.parametrize(
    "name",
    ["core/choice.py", "core/kernels/core.py", "core/kernels/core.pxd", "lab/simulation/runs.py",
     "lab/worlds/linear.py", "online/bandit.py", "checks.py"],
)  # fmt: skip
def test_any_source_that_can_change_a_result_changes_the_digest(package: Path, name: str) -> None:
    before = sources.digest(package)
    with open(package / name, "a") as file:
        file.write("\n")
    assert sources.digest(package) != before
    (package / name).rename((package / name).with_name("moved.py"))
    assert sources.digest(package) != before


def test_a_digest_takes_milliseconds() -> None:
    """About 4 for 130 files; the limit is a hundred times that, for slow disks."""
    start = time.perf_counter()
    sources.digest(sources.PACKAGE)
    assert time.perf_counter() - start < 0.5


def test_a_changed_package_does_not_go_on_with_earlier_results(
    package: Path, tmp_path: Path
) -> None:
    """From end to end: a copy simulates and resumes, and after a change of its sources refuses."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}

    def simulated() -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", SIMULATES, str(tmp_path / "kept")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    for _ in range(2):
        done = simulated()
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(package / "__init__.py")
    with open(package / "core" / "posterior.py", "a") as file:
        file.write("\n# another way to compute a mean\n")
    assert "holds results of other sources of Keyhole" in simulated().stderr


def test_resuming_results_of_other_sources_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not overwritten either: they may have taken days."""
    world = kh.LinearWorld.random(n_arms=2, context_dim=2, dim=2, seed=1)

    def simulated(folder: str, seed: int = 1) -> None:
        kh.simulate(
            world, kh.Greedy(), horizon=20, replications=2, seed=seed, resume=tmp_path / folder
        )

    simulated("kept")
    before = {path: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    monkeypatch.setattr(store, "SOURCES", "0.0.1-other")
    with pytest.raises(
        kh.InvalidValue, match=r"other sources of Keyhole, .* and not '0\.0\.1-other'"
    ):
        simulated("kept")
    with pytest.raises(kh.InvalidValue, match="another simulation, which differs in"):
        simulated("kept", seed=2)
    assert {path: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == before
    simulated("another")


def test_a_study_of_other_sources_is_simulated_again_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, calls = tiny(), list[int]()
    simulate = kh.simulate

    def counted(*args: object, **kwargs: object) -> object:
        calls.append(1)
        return simulate(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(study, "simulate", counted)
    assert outdated(job, tmp_path) is None
    first = run(job, tmp_path)
    assert first["versions"]["sources"] == sources.SOURCES
    once = len(calls)
    assert once == len(job.cells)
    assert outdated(job, tmp_path) is None
    assert run(job, tmp_path) == first
    assert len(calls) == once
    for module in (running, store):
        monkeypatch.setattr(module, "SOURCES", "0.0.1-other")
    reason = outdated(job, tmp_path)
    assert reason is not None
    assert "fig2 is simulated again" in reason
    assert sources.SOURCES in reason
    assert "0.0.1-other" in reason
    again = run(job, tmp_path)
    assert len(calls) == 2 * once
    assert again["key"] != first["key"]
    assert again["verdicts"] == first["verdicts"]
    assert outdated(job, tmp_path) is None


def test_an_interrupted_study_of_other_sources_says_why_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no manifest then, only cells."""
    job = tiny()
    run(job, tmp_path)
    shutil.rmtree(tmp_path / "fig2")
    assert outdated(job, tmp_path) is None
    monkeypatch.setattr(running, "SOURCES", "0.0.1-other")
    assert "is simulated again" in (outdated(job, tmp_path) or "")
