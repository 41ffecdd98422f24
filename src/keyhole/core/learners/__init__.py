"""Learners: objects that start, choose and learn."""

from keyhole.core.learners.arms import MOST_ARMS, Arm, Arms, arm_name
from keyhole.core.learners.draws import Draws
from keyhole.core.learners.joint import choose_jointly, joint_probability
from keyhole.core.learners.learner import Learner
from keyhole.core.learners.protocol import AnyLearner, Chosen, checked_choice
from keyhole.core.learners.row_sums import PairwiseSums, RowSums, Summing, add_sums
from keyhole.core.learners.sensor_learner import SensorLearner, SensorName, sensor_name
from keyhole.core.learners.sensor_state import SensorReward, SensorState
from keyhole.core.learners.sensor_sums import Sums
from keyhole.core.learners.state import LearnerState, Provisional, Waiting, spread_design, widened
from keyhole.core.learners.terms import Term, amend_term, forget_terms, terms_in_sums

__all__ = [
    "MOST_ARMS",
    "AnyLearner",
    "Arm",
    "Arms",
    "Chosen",
    "Draws",
    "Learner",
    "LearnerState",
    "PairwiseSums",
    "Provisional",
    "RowSums",
    "SensorLearner",
    "SensorName",
    "SensorReward",
    "SensorState",
    "Summing",
    "Sums",
    "Term",
    "Waiting",
    "add_sums",
    "amend_term",
    "arm_name",
    "checked_choice",
    "choose_jointly",
    "forget_terms",
    "joint_probability",
    "sensor_name",
    "spread_design",
    "terms_in_sums",
    "widened",
]
