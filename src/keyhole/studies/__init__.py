"""The paper's experiments, and four of our own, as data."""

from keyhole.studies.arms import FIG3, SHARED
from keyhole.studies.dimensions import FIG1, FIG2
from keyhole.studies.missing import MISSING
from keyhole.studies.patients import FIG4, FIG5, FIG6
from keyhole.studies.running import Job, run
from keyhole.studies.scaling import SCALING
from keyhole.studies.study import Cell, Choice, Outcome, Settings, Study, Verdict
from keyhole.studies.variants import VARIANTS

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, VARIANTS, SHARED, SCALING, MISSING)
}

__all__ = [
    "STUDIES",
    "Cell",
    "Choice",
    "Job",
    "Outcome",
    "Settings",
    "Study",
    "Verdict",
    "run",
]
