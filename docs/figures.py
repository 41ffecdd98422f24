"""The figures of these pages, made by the library itself: `python docs/figures.py`."""

import tempfile
from pathlib import Path

import pandas as pd
import xarray as xr

import keyhole as kh
from keyhole.lab.studies import STUDIES, Job, Settings, run

FOLDER = Path(__file__).parent / "figures"


def prices() -> None:
    """What learning costs, and what not seeing costs."""
    world = kh.LinearWorld.random(n_arms=5, context_dim=20, dim=10, seed=1)
    runs = kh.simulate(
        world,
        kh.ThompsonSampling(v="oracle"),
        horizon=4000,
        replications=20,
        seed=1,
        progress=False,
    )
    one = runs.isel(policy=0)
    learning, unseen = one.regret, one.latent_regret - one.regret
    both = xr.concat([learning, unseen], pd.Index(["learning", "not seeing"], name="price"))
    figure = kh.plots.curves(both, "what is lost", by="price", worst=None)
    figure.savefig(FOLDER / "prices.png", dpi=150)


def studies() -> None:
    """A figure of the paper, and two of our own."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("fig3", "missing", "sensors"):
            settings = Settings()
            job = Job(STUDIES[name], settings, STUDIES[name].cells(settings))
            run(job, Path(folder))
            made = Path(folder) / name / "figure.png"
            (FOLDER / f"{name}.png").write_bytes(made.read_bytes())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    prices()
    studies()
