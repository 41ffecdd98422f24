"""Keyhole: decisions whose context is seen only in part, by Thompson sampling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole import audit, datasets, plots, summary, theory
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
    from keyhole.simulation import SimulationInterrupted, simulate
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

# Where each name lives. It is imported when it is first used: a command can then say something
# before NumPy is loaded, and deciding online needs nothing of the extra "lab".
_HOMES = {
    "keyhole.bandit": ("Bandit", "Decision", "Decisions", "Effects"),
    "keyhole.choice": ("choice_probabilities",),
    "keyhole.errors": (
        *("AlreadyLearned", "DataUnavailable", "FileError", "InvalidValue", "KeyholeError"),
        *("KeyholeWarning", "MissingExtra", "UnknownArm"),
    ),
    "keyhole.kernels": ("Rule",),
    "keyhole.policies": (
        *("OFUL", "EpsilonGreedy", "Greedy", "GreedyFirst", "LinUCB", "Policy"),
        *("ThompsonSampling", "Uniform"),
    ),
    "keyhole.posterior": ("Posterior",),
    "keyhole.seeds": ("Streams",),
    "keyhole.simulation": ("SimulationInterrupted", "simulate"),
    "keyhole.tables": ("Dataset",),
    "keyhole.worlds": (
        *("DatasetWorld", "LinearWorld", "MissingWorld", "RandomDatasetWorld"),
        *("RandomLinearWorld", "RandomMissingWorld", "Rounds", "World"),
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("audit", "datasets", "plots", "summary", "theory")


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module 'keyhole' has no attribute {name!r}")
    try:
        module = import_module(_HOME.get(name, f"keyhole.{name}"))
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("keyhole"):
            raise
        from keyhole.errors import MissingExtra, install_line

        raise MissingExtra(
            f"keyhole.{name} needs {missing.name}, which is not installed: {install_line('lab')}"
        ) from None
    found = module if name in _MODULES else getattr(module, name)
    globals()[name] = found  # the next use finds it without coming here
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
