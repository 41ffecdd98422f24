"""An environment for each peer, since their requirements clash."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HOME = Path(__file__).resolve().parents[2] / ".peers"


def environment(home: Path) -> Path:
    """Make an environment, unless it is there, and return its interpreter."""
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
    return python


def pip_install(python: Path, *what: str) -> None:
    """Install by pip; raises CalledProcessError where that cannot be done."""
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, *what], capture_output=True, text=True, check=True)


@dataclass(frozen=True)
class Peer:
    """A library, its distribution on PyPI, and what it needs that it does not say."""

    name: str
    module: str
    package: str
    more: tuple[str, ...] = ()
    without: tuple[str, ...] = field(default=())  # installed without its own requirements
    thompson: bool = True
    variants: tuple[str, ...] = ()

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of its adapters."""
        return self.variants or (self.name,)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return HOME / self.name / "bin" / "python"

    def install(self) -> str:
        """Install the library and return its version; raise CalledProcessError if that fails."""
        python, done = environment(HOME / self.name), HOME / self.name / "installed"
        if not done.exists():
            if self.without:
                pip_install(python, "--no-deps", *self.without)
            wanted = [] if self.without else [self.package]
            pip_install(python, *wanted, *self.more)
            done.touch()
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        return subprocess.check_output([python, "-c", code], text=True).strip()


PEERS = (
    Peer("contextualbandits", "contextualbandits.online", "contextualbandits",
         variants=("contextualbandits-ci", "contextualbandits")),
    Peer("mabwiser", "mabwiser.mab", "mabwiser"),
    Peer("bayesianbandits", "bayesianbandits", "bayesianbandits"),
    Peer("coba", "coba", "coba", more=("numpy",)),
    # Versions from 0.5 on ask for an older Python, and what they require can no longer be built;
    # LinTS needs only these.
    Peer("obp", "obp.policy", "obp", without=("obp",),
         more=("numpy", "scipy", "scikit-learn", "pandas", "pyyaml", "tqdm", "matplotlib",
               "seaborn", "mypy-extensions", "torch")),
    Peer("river", "river.bandit", "river", thompson=False),
    Peer("vowpalwabbit", "vowpalwabbit", "vowpalwabbit", more=("numpy",), thompson=False,
         variants=("vowpalwabbit-squarecb", "vowpalwabbit-regcb", "vowpalwabbit-parsed")),
)  # fmt: skip
