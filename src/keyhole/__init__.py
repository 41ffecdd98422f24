"""Keyhole: decisions whose context is seen only in part, by Thompson sampling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keyhole import evaluation, theory
    from keyhole.core import (
        OFUL,
        AnyLearner,
        Belief,
        Chosen,
        Draws,
        EpsilonGreedy,
        Features,
        Greedy,
        GreedyFirst,
        Learner,
        LinUCB,
        Policy,
        Posterior,
        Rule,
        Sensor,
        SensorLearner,
        Streams,
        ThompsonSampling,
        Transformed,
        Uniform,
        WeightedThompsonSampling,
        choice_probabilities,
    )
    from keyhole.errors import (
        AlreadyLearned,
        DataUnavailable,
        FileError,
        ForgottenEvent,
        InvalidValue,
        KeyholeError,
        KeyholeWarning,
        MissingExtra,
        UnknownArm,
        UnknownEvent,
    )
    from keyhole.evaluation import evaluate
    from keyhole.lab import audit, datasets, plots, summary
    from keyhole.lab.simulation import SimulationInterrupted, simulate
    from keyhole.lab.tables import Dataset
    from keyhole.lab.worlds import (
        DatasetWorld,
        LinearWorld,
        MissingWorld,
        RandomDatasetWorld,
        RandomLinearWorld,
        RandomMissingWorld,
        Rounds,
        World,
    )
    from keyhole.online import Bandit, Decision, Decisions, Effects, Explanation, Log, fit

__version__ = "0.1.0"

__all__ = [
    "OFUL",
    "AlreadyLearned",
    "AnyLearner",
    "Bandit",
    "Belief",
    "Chosen",
    "DataUnavailable",
    "Dataset",
    "DatasetWorld",
    "Decision",
    "Decisions",
    "Draws",
    "Effects",
    "EpsilonGreedy",
    "Explanation",
    "Features",
    "FileError",
    "ForgottenEvent",
    "Greedy",
    "GreedyFirst",
    "InvalidValue",
    "KeyholeError",
    "KeyholeWarning",
    "Learner",
    "LinUCB",
    "LinearWorld",
    "Log",
    "MissingExtra",
    "MissingWorld",
    "Policy",
    "Posterior",
    "RandomDatasetWorld",
    "RandomLinearWorld",
    "RandomMissingWorld",
    "Rounds",
    "Rule",
    "Sensor",
    "SensorLearner",
    "SimulationInterrupted",
    "Streams",
    "ThompsonSampling",
    "Transformed",
    "Uniform",
    "UnknownArm",
    "UnknownEvent",
    "WeightedThompsonSampling",
    "World",
    "audit",
    "choice_probabilities",
    "datasets",
    "evaluate",
    "evaluation",
    "fit",
    "plots",
    "simulate",
    "summary",
    "theory",
]

# Where each name lives. It is imported when it is first used: a command can then say something
# before NumPy is loaded, and deciding online needs nothing of the extra "lab".
_HOMES = {
    "keyhole.core": (
        *("OFUL", "AnyLearner", "Belief", "Chosen", "Draws", "EpsilonGreedy", "Features"),
        *("Greedy", "GreedyFirst", "Learner", "LinUCB", "Policy", "Posterior"),
        *("Rule", "Sensor", "SensorLearner", "Streams", "ThompsonSampling", "Transformed"),
        *("Uniform", "WeightedThompsonSampling", "choice_probabilities"),
    ),
    "keyhole.errors": (
        *("AlreadyLearned", "DataUnavailable", "FileError", "ForgottenEvent", "InvalidValue"),
        *("KeyholeError", "KeyholeWarning", "MissingExtra", "UnknownArm", "UnknownEvent"),
    ),
    "keyhole.evaluation": ("evaluate",),
    "keyhole.lab.simulation": ("SimulationInterrupted", "simulate"),
    "keyhole.lab.tables": ("Dataset",),
    "keyhole.lab.worlds": (
        *("DatasetWorld", "LinearWorld", "MissingWorld", "RandomDatasetWorld"),
        *("RandomLinearWorld", "RandomMissingWorld", "Rounds", "World"),
    ),
    "keyhole.online": (
        *("Bandit", "Decision", "Decisions", "Effects", "Explanation", "Log", "fit"),
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
# Modules that are public as a whole.
_MODULES = {
    "audit": "keyhole.lab.audit",
    "datasets": "keyhole.lab.datasets",
    "evaluation": "keyhole.evaluation",
    "plots": "keyhole.lab.plots",
    "summary": "keyhole.lab.summary",
    "theory": "keyhole.theory",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name) or _MODULES.get(name)
    if home is None:
        raise AttributeError(f"module 'keyhole' has no attribute {name!r}")
    try:
        module = import_module(home)
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
