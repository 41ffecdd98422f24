"""The core: posterior, policies, learners, observers, choice probabilities and random streams.

Its compiled part is `keyhole.core.kernels`, which has a front of its own.
"""

from keyhole.core.choice import choice_probabilities, expected_largest
from keyhole.core.kernels import Floats, Ints, Rule
from keyhole.core.learners import (
    MOST_ARMS,
    AnyLearner,
    Arm,
    Arms,
    Chosen,
    Draws,
    Learner,
    LearnerState,
    Provisional,
    Waiting,
    arm_name,
    checked_choice,
)
from keyhole.core.observers import (
    SAMPLE,
    Effects,
    Fill,
    Moments,
    Observer,
    Sample,
    Units,
)
from keyhole.core.policies import (
    OFUL,
    POLICIES,
    EpsilonGreedy,
    Greedy,
    GreedyFirst,
    LinUCB,
    Policy,
    Sharing,
    ThompsonSampling,
    Uniform,
)
from keyhole.core.posterior import Posterior
from keyhole.core.seeds import (
    Memory,
    Seed,
    Stream,
    Streams,
    child_seed,
    choice_streams,
    seed_sequence,
    streams,
)

__all__ = [
    "MOST_ARMS",
    "OFUL",
    "POLICIES",
    "SAMPLE",
    "AnyLearner",
    "Arm",
    "Arms",
    "Chosen",
    "Draws",
    "Effects",
    "EpsilonGreedy",
    "Fill",
    "Floats",
    "Greedy",
    "GreedyFirst",
    "Ints",
    "Learner",
    "LearnerState",
    "LinUCB",
    "Memory",
    "Moments",
    "Observer",
    "Policy",
    "Posterior",
    "Provisional",
    "Rule",
    "Sample",
    "Seed",
    "Sharing",
    "Stream",
    "Streams",
    "ThompsonSampling",
    "Uniform",
    "Units",
    "Waiting",
    "arm_name",
    "checked_choice",
    "child_seed",
    "choice_probabilities",
    "choice_streams",
    "expected_largest",
    "seed_sequence",
    "streams",
]
