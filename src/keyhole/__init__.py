"""Keyhole: decisions whose context is seen only in part, by Thompson sampling."""

from keyhole.bandit import Bandit, Decision, Decisions
from keyhole.choice import choice_probabilities
from keyhole.errors import FileError, InvalidValue, KeyholeError, UnknownArm
from keyhole.policies import EpsilonGreedy, Greedy, LinUCB, Policy, ThompsonSampling, Uniform
from keyhole.posterior import Posterior

__version__ = "0.1.0"

__all__ = [
    "Bandit",
    "Decision",
    "Decisions",
    "EpsilonGreedy",
    "FileError",
    "Greedy",
    "InvalidValue",
    "KeyholeError",
    "LinUCB",
    "Policy",
    "Posterior",
    "ThompsonSampling",
    "Uniform",
    "UnknownArm",
    "choice_probabilities",
]
