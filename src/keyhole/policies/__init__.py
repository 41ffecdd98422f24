"""Policies: how an arm is chosen, as frozen recipes. What was learned lives elsewhere."""

from keyhole.policies.epsilon_greedy import EpsilonGreedy
from keyhole.policies.greedy import Greedy
from keyhole.policies.greedy_first import GreedyFirst
from keyhole.policies.lin_ucb import LinUCB
from keyhole.policies.oful import OFUL
from keyhole.policies.policy import Policy
from keyhole.policies.thompson_sampling import ThompsonSampling
from keyhole.policies.uniform import Uniform

__all__ = [
    "OFUL",
    "EpsilonGreedy",
    "Greedy",
    "GreedyFirst",
    "LinUCB",
    "Policy",
    "ThompsonSampling",
    "Uniform",
]
