"""Keyhole: decisions whose context is seen only in part, by Thompson sampling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keyhole import theory
from keyhole.bandit import Bandit, Decision, Decisions, Effects
from keyhole.choice import choice_probabilities
from keyhole.errors import (
    AlreadyLearned,
    DataUnavailable,
    FileError,
    InvalidValue,
    KeyholeError,
    KeyholeWarning,
    MissingExtra,
    UnknownArm,
)
from keyhole.kernels import Rule
from keyhole.policies import (
    OFUL,
    EpsilonGreedy,
    Greedy,
    GreedyFirst,
    LinUCB,
    Policy,
    ThompsonSampling,
    Uniform,
)
from keyhole.posterior import Posterior
from keyhole.seeds import Streams
from keyhole.tables import Dataset
from keyhole.worlds import (
    DatasetWorld,
    LinearWorld,
    MissingWorld,
    RandomDatasetWorld,
    RandomLinearWorld,
    RandomMissingWorld,
    Rounds,
    World,
)

if TYPE_CHECKING:
    from keyhole import audit, datasets, plots, summary
    from keyhole.simulation import SimulationInterrupted, simulate

__version__ = "0.1.0"

__all__ = [
    "OFUL",
    "AlreadyLearned",
    "Bandit",
    "DataUnavailable",
    "Dataset",
    "DatasetWorld",
    "Decision",
    "Decisions",
    "Effects",
    "EpsilonGreedy",
    "FileError",
    "Greedy",
    "GreedyFirst",
    "InvalidValue",
    "KeyholeError",
    "KeyholeWarning",
    "LinUCB",
    "LinearWorld",
    "MissingExtra",
    "MissingWorld",
    "Policy",
    "Posterior",
    "RandomDatasetWorld",
    "RandomLinearWorld",
    "RandomMissingWorld",
    "Rounds",
    "Rule",
    "SimulationInterrupted",
    "Streams",
    "ThompsonSampling",
    "Uniform",
    "UnknownArm",
    "World",
    "audit",
    "choice_probabilities",
    "datasets",
    "plots",
    "simulate",
    "summary",
    "theory",
]

# What needs the extra "lab" is imported when it is first used: deciding online needs none of it.
_LAB = {
    "SimulationInterrupted": "keyhole.simulation",
    "simulate": "keyhole.simulation",
    "audit": "keyhole.audit",
    "datasets": "keyhole.datasets",
    "plots": "keyhole.plots",
    "summary": "keyhole.summary",
}


def __getattr__(name: str) -> Any:
    if name not in _LAB:
        raise AttributeError(f"module 'keyhole' has no attribute {name!r}")
    try:
        module = import_module(_LAB[name])
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("keyhole"):
            raise
        raise MissingExtra(
            f"keyhole.{name} needs {missing.name}, which is not installed: "
            "pip install 'keyhole[lab]'"
        ) from None
    return module if module.__name__ == f"keyhole.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
