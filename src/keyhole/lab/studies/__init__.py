"""The paper's experiments, those of an earlier paper, and nine of our own, as data."""

from keyhole.lab.evidence import Outcome, Verdict
from keyhole.lab.studies.arms import FIG3, SHARED
from keyhole.lab.studies.dimensions import FIG1, FIG2
from keyhole.lab.studies.evaluation import EVALUATION
from keyhole.lab.studies.missing import MISSING
from keyhole.lab.studies.non_normal import NON_NORMAL
from keyhole.lab.studies.park2021 import PARK2021
from keyhole.lab.studies.patients import FIG4, FIG5, FIG6
from keyhole.lab.studies.report import PAGE as REPORT_PAGE
from keyhole.lab.studies.report import write as write_report
from keyhole.lab.studies.report import write_audit
from keyhole.lab.studies.running import Job, outdated, run
from keyhole.lab.studies.scaling import SCALING
from keyhole.lab.studies.sensors import SENSORS
from keyhole.lab.studies.study import Cell, Choice, Settings, Study, Table
from keyhole.lab.studies.trial import TRIAL
from keyhole.lab.studies.variants import VARIANTS
from keyhole.lab.studies.warfarin import WARFARIN

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        *(FIG1, FIG2, FIG3, FIG4, FIG5, FIG6),
        *(VARIANTS, SHARED, SCALING, MISSING, SENSORS, NON_NORMAL, WARFARIN, TRIAL, EVALUATION),
        PARK2021,
    )
}

__all__ = [
    "REPORT_PAGE",
    "STUDIES",
    "Cell",
    "Choice",
    "Job",
    "Outcome",
    "Settings",
    "Study",
    "Table",
    "Verdict",
    "outdated",
    "run",
    "write_audit",
    "write_report",
]
