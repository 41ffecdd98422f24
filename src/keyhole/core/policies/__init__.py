"""Policies: frozen recipes for the choice of an arm. Learned state is kept elsewhere."""

from keyhole.core.policies.epsilon_greedy import EpsilonGreedy
from keyhole.core.policies.greedy import Greedy
from keyhole.core.policies.greedy_first import GreedyFirst
from keyhole.core.policies.lin_ucb import LinUCB
from keyhole.core.policies.oful import OFUL
from keyhole.core.policies.policy import Policy, Sharing
from keyhole.core.policies.thompson_sampling import ThompsonSampling
from keyhole.core.policies.uniform import Uniform
from keyhole.core.policies.weighted_thompson_sampling import WeightedThompsonSampling

# Every policy by its name in commands and files: the command line, its help, storage, the tests and
# the reference read this.
POLICIES: dict[str, type[Policy]] = {
    "thompson": ThompsonSampling,
    "greedy": Greedy,
    "linucb": LinUCB,
    "epsilon-greedy": EpsilonGreedy,
    "uniform": Uniform,
    "oful": OFUL,
    "greedy-first": GreedyFirst,
    "weighted-thompson": WeightedThompsonSampling,
}

__all__ = [
    "OFUL",
    "POLICIES",
    "EpsilonGreedy",
    "Greedy",
    "GreedyFirst",
    "LinUCB",
    "Policy",
    "Sharing",
    "ThompsonSampling",
    "Uniform",
    "WeightedThompsonSampling",
]
