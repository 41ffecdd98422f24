"""The paper's experiments, and three of our own, as data."""

from keyhole.studies.arms import FIG3, SHARED
from keyhole.studies.dimensions import FIG1, FIG2
from keyhole.studies.missing import MISSING
from keyhole.studies.patients import FIG4, FIG5, FIG6
from keyhole.studies.running import Job, run
from keyhole.studies.scaling import SCALING
from keyhole.studies.study import Cell, Settings, Study, Verdict

STUDIES: dict[str, Study] = {
    study.name: study for study in (FIG1, FIG2, FIG3, FIG4, FIG5, FIG6, SHARED, SCALING, MISSING)
}

__all__ = ["STUDIES", "Cell", "Job", "Settings", "Study", "Verdict", "run"]
