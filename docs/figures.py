"""The pictures of these pages, made by the library itself.

A picture of a page is drawn from the variables that the code of its page leaves, so that it
shows what the page prints. `python docs/figures.py` runs every page with such pictures, writes what
its blocks print into it, and draws them; with `--studies` it also makes the others, in minutes.
"""

import argparse
import hashlib
import io
import re
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import keyhole as kh
from keyhole.lab.plots import COLOURS, colour, dressed
from keyhole.lab.studies import STUDIES, Job, Settings, run

DOCS = Path(__file__).parent
FOLDER = DOCS / "figures"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A line of the drawing that has coordinates, which Matplotlib writes to six digits.
CURVE = re.compile(r"^(?:[LQC] |<path d=\"M |\s*<use xlink:href=\"#m).*$", re.MULTILINE)
BLUE, RED, GREEN = COLOURS[:3]
GREY = "0.55"
STYLE = {"svg.hashsalt": "keyhole", "font.size": 10.0, "path.simplify_threshold": 0.5}

Page = dict[str, Any]


def canvas(width: float = 6.4, height: float = 3.2) -> tuple[Figure, Axes]:
    """Return a figure of the usual size with its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def dress(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Set the labels and the grid of axes whose x axis may be anything."""
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)


def beside(axes: Axes) -> None:
    """Put the legend beside the axes."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize="small")


def thinned(runs: xr.Dataset, step: int = 2) -> xr.Dataset:
    """Return every second checkpoint, or one of `step`, with the last: a smaller file."""
    return runs.isel(time=slice((runs.sizes["time"] - 1) % step, None, step))


def running(values: Any, width: int = 200) -> tuple[Any, Any]:
    """Return the round and the mean of the last `width` values, or of all so far."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(20, len(values) + 1, 10)
    starts = np.maximum(ends - width, 0)
    return ends, (sums[ends] - sums[starts]) / (ends - starts)


# -- the front page -------------------------------------------------------------------------------


def front(page: Page) -> Figure:
    """Draw the reward per round of 200 replications between chance and the best observer."""
    world = page["world"]
    runs = kh.simulate(
        world,
        {"Thompson sampling": kh.ThompsonSampling(), "uniform": kh.Uniform()},
        horizon=2_000,
        replications=200,
        seed=1,
        checkpoints=range(20, 2_001, 20),
        progress=False,
    )
    sample = world.sample(200_000, seed=2)
    best, seeing = sample.values.max(axis=1).mean(), sample.latent.max(axis=1).mean()
    rate = best - runs.regret.diff("time") / runs.time.diff("time")
    figure, axes = canvas(7.0, 3.4)
    for name, tint in (("Thompson sampling", BLUE), ("uniform", GREY)):
        band = kh.summary.summarize(rate.sel(policy=name))
        label = name if name != "uniform" else "an arm at random"
        axes.plot(band.time, band["mean"], color=tint, linewidth=1.8, label=label)
        axes.fill_between(band.time, band.low, band.high, color=tint, alpha=0.25, linewidth=0)
    axes.axhline(seeing, color=GREEN, linestyle=":", label="the best who sees everything")
    axes.axhline(best, color=RED, linestyle="--", label="the best with the same view")
    dressed(axes, "expected reward per round", "")
    axes.set_ylim(-0.15, 1.12 * seeing)
    beside(axes)
    return figure


# -- compare policies -----------------------------------------------------------------------------


def research_world(page: Page) -> Figure:
    """Draw x'mu against y'eta of one arm."""
    rounds = page["rounds"]
    values, latent = rounds.values[:200, 0], rounds.latent[:200, 0]
    figure, axes = canvas(4.6, 3.6)
    axes.plot(values, latent, ".", color=BLUE, alpha=0.5, markersize=4, label="a round")
    ends = np.array([values.min(), values.max()])
    axes.plot(ends, ends, color=RED, label="x'mu = y'eta")
    dress(axes, "y'eta: best prediction from y", "x'mu: expected if x is seen")
    axes.legend(frameon=False, fontsize="small")
    return figure


def research_regret(page: Page) -> Figure:
    """Draw the regret of the first simulation."""
    runs = page["alone"]
    return kh.plots.regret(runs)


def research_policies(page: Page) -> Figure:
    """Draw the regret of the four policies, with what theory predicts for two of them."""
    return kh.plots.regret(thinned(page["runs"], 3), asymptote=True)


def research_growth(page: Page) -> Figure:
    """Draw regret over the squared logarithm of time."""
    return kh.plots.normalized_regret(page["long"])


def research_worst(page: Page) -> Figure:
    """Draw the final regret of every replication, sorted."""
    final = page["many"].regret.isel(time=-1)
    figure, axes = canvas()
    for name in final.policy.values:
        ordered = np.sort(final.sel(policy=name).values)
        axes.plot(ordered, color=colour(name), marker=".", linewidth=1, label=name)
    dress(axes, "replication, from the best to the worst", "regret after 3,000 rounds")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def research_seeing(page: Page) -> Figure:
    """Draw the two costs of a round by the number of observed entries."""
    costs = page["costs"]
    learning, unseen = np.array(list(costs.values())).T
    figure, axes = canvas()
    places = np.arange(len(costs))
    axes.bar(places, learning, color=BLUE, label="learning")
    axes.bar(places, unseen, bottom=learning, color=COLOURS[4], label="not seeing")
    axes.set_xticks(places, [str(dim) for dim in costs])
    dress(axes, "numbers seen of a context of 20", "lost per round")
    axes.legend(frameon=False)
    return figure


# -- decide online --------------------------------------------------------------------------------


def online_learning(page: Page) -> Figure:
    """Draw the mean reward of the last 200 visits."""
    figure, axes = canvas()
    axes.plot(*running(page["rewards"]), color=BLUE, label="bandit")
    axes.plot(*running(page["best"]), color=RED, linestyle="--", label="best offer")
    axes.axhline(0.0, color=GREY, linewidth=1, label="any one offer, on average")
    dress(axes, "visit", "mean reward, last 200")
    beside(axes)
    return figure


def online_probability(page: Page) -> Figure:
    """Draw the probabilities of the offers for one visitor."""
    sure = page["sure"]
    figure, axes = canvas()
    for i, arm in enumerate(page["OFFERS"]):
        places = np.arange(len(sure)) + 0.27 * (i - 1)
        bars = axes.bar(places, [p[arm] for p in sure.values()], 0.25, color=COLOURS[i], label=arm)
        axes.bar_label(bars, fmt="%.2f", fontsize=7, padding=1)
    axes.set_xticks(range(len(sure)), [f"{number:,}" for number in sure])
    dress(axes, "visits so far", "probability of being chosen")
    axes.set_ylim(0, 1.08)
    beside(axes)
    return figure


def online_late(page: Page) -> Figure:
    """Draw the mean reward with prompt and with late rewards."""
    figure, axes = canvas()
    axes.plot(*running(page["rewards"]), color=BLUE, label="prompt")
    axes.plot(*running(page["late_rewards"]), color=COLOURS[4], label="300 visits late")
    axes.plot(*running(page["best"]), color=RED, linestyle="--", label="best offer")
    axes.axvline(300, color=GREY, linewidth=1, linestyle=":")
    dress(axes, "visit", "mean reward, last 200")
    beside(axes)
    return figure


def online_effects(page: Page) -> Figure:
    """Draw the effects with two standard errors, and the truth."""
    figure, axes = canvas()
    for i, (arm, found) in enumerate(page["bandit"].effects.items()):
        places = np.arange(4) + 0.2 * (i - 1)
        axes.errorbar(
            places,
            found.estimate,
            yerr=2 * found.error,
            fmt="o",
            color=COLOURS[i],
            markersize=4,
            label=arm,
        )
        truth = "truth" if i == 2 else None
        axes.plot(places, page["EFFECTS"][arm], "_", color="black", markersize=12, label=truth)
    axes.set_xticks(range(4), [f"number {i + 1}" for i in range(4)])
    dress(axes, "", "effect on the reward")
    beside(axes)
    return figure


def online_missing(page: Page) -> Figure:
    """Draw predicted against true weights."""
    true = page["weight"][page["hidden"]]
    figure, axes = canvas(4.6, 3.6)
    axes.plot(true, page["predicted"], ".", color=BLUE, alpha=0.7, label="a missing weight")
    ends = np.array([true.min(), true.max()])
    axes.plot(ends, ends, color=RED, label="predicted = true")
    axes.axhline(page["weight"].mean(), color=GREY, linestyle="--", label="filled with the mean")
    dress(axes, "true weight, kg", "predicted weight, kg")
    axes.legend(frameon=False, fontsize="small")
    return figure


def online_servers(page: Page) -> Figure:
    """Draw the rewards that each bandit has learned, by offer."""
    names = ["base", "east", "west", "merged"]
    figure, axes = canvas(6.4, 2.6)
    left = np.zeros(4)
    for i, arm in enumerate(page["OFFERS"]):
        widths = np.array([page[name].counts[arm] for name in names])
        axes.barh(names, widths, left=left, color=COLOURS[i], label=arm)
        left += widths
    axes.invert_yaxis()
    dress(axes, "rewards learned", "")
    beside(axes)
    return figure


def online_evaluation(page: Page) -> Figure:
    """Draw estimates of three rules with two standard errors, and the truth."""
    figure, axes = canvas(6.4, 2.4)
    for i, (name, (estimate, error, truth)) in enumerate(page["estimates"].items()):
        first = i == 0
        axes.errorbar(
            estimate,
            i,
            xerr=2 * error,
            fmt="o",
            color=BLUE,
            label="from the log" if first else None,
        )
        axes.plot(truth, i, "|", color=RED, markersize=16, label="truth" if first else None)
        axes.text(-0.35, i - 0.28, name, fontsize=8)
    axes.set_yticks([])
    axes.set_ylim(2.5, -0.6)
    axes.set_xlim(-0.4, 1.4)
    dress(axes, "reward per visit", "")
    beside(axes)
    return figure


# -- records with names ----------------------------------------------------------------------------


def records_effects(page: Page) -> Figure:
    """Draw the effects on the reward of B, each per step of a usual size, and the truth."""
    found, truth = page["learned"], {"age": 0.02, "device=desktop": -1.0}
    steps = {"age": 10.0, "basket": 10.0}
    figure, axes = canvas(6.4, 2.4)
    names = [name for name in found if name != "constant"]
    for k, name in enumerate(names):
        step, first = steps.get(name, 1.0), k == 0
        estimate, error = found[name]
        axes.errorbar(
            step * estimate,
            k,
            xerr=2 * step * error,
            fmt="o",
            color=BLUE,
            markersize=5,
            label="estimate ± 2 standard errors" if first else None,
        )
        true = step * truth.get(name, 0.0)
        axes.plot(true, k, "|", color=RED, markersize=16, label="truth" if first else None)
    axes.axvline(0.0, color=GREY, linewidth=1)
    labels = [f"{name}, 10 more" if name in steps else name for name in names]
    axes.set_yticks(range(len(names)), labels)
    axes.set_ylim(len(names) - 0.5, -0.5)
    dress(axes, "effect on the reward of B", "")
    axes.legend(frameon=False, fontsize="small", loc="center left")
    return figure


# -- test the theory ------------------------------------------------------------------------------


def theory_constants(page: Page) -> Figure:
    """Draw the probability of each arm being best, computed and counted."""
    p, shares = np.array([one.value for one in page["constants"].p]), page["shares"]
    error = 2 * np.sqrt(p * (1 - p) / len(page["rounds"]))
    figure, axes = canvas(4.8, 3.0)
    axes.bar(np.arange(3), p, 0.6, color=BLUE, alpha=0.5, label="computed")
    axes.errorbar(
        np.arange(3), shares, yerr=error, fmt="o", color=RED, label="counted, 2 standard errors"
    )
    axes.set_xticks(range(3), ["arm 1", "arm 2", "arm 3"])
    dress(axes, "", "probability of being best")
    axes.set_ylim(0, 0.5)
    axes.legend(frameon=False, fontsize="small")
    return figure


def theory_length(page: Page) -> Figure:
    """Draw the longest observation of each run and L."""
    figure, axes = canvas()
    limit = kh.theory.Promises(page["constants"], horizon=1_000, delta=0.05).length
    axes.hist(page["longest"], bins=20, color=BLUE, alpha=0.8, label="longest of a run")
    axes.axvline(limit, color=RED, label=f"L = {limit:.1f}")
    axes.set_xlim(0, 1.1 * limit)
    dress(axes, "length of an observation", "runs")
    axes.legend(frameon=False)
    return figure


def theory_ellipsoid(page: Page) -> Figure:
    """Draw the distances of 20 runs and the radius."""
    figure, axes = canvas()
    for i, path in enumerate(page["paths"]):
        axes.plot(
            list(path),
            list(path.values()),
            color=BLUE,
            alpha=0.4,
            linewidth=1,
            label="a run" if i == 0 else None,
        )
    axes.plot(page["pulls"], page["radius"], color=RED, label="radius of lem:subg")
    axes.set_xscale("log")
    dress(axes, "pulls of arm 1", "$|B^{1/2} (\\hat\\eta - \\eta)|$")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def theory_starts(page: Page) -> Figure:
    """Draw the first round of each bound."""
    # Most repaired bounds begin at the same round: one stands for all of them.
    kept = ("theorem_1_repaired", *(name for name in page["starts"] if "_repaired" not in name))
    ordered = dict(sorted(((name, page["starts"][name]) for name in kept), key=lambda one: one[1]))
    figure, axes = canvas(6.8, 0.22 * len(ordered) + 1.0)
    places = np.arange(len(ordered))
    axes.hlines(places, 1.0, list(ordered.values()), color="0.8")
    axes.plot(list(ordered.values()), places, "o", color=BLUE, markersize=5)
    axes.axvline(1e4, color=RED, linestyle="--", label="10,000 rounds, our run")
    axes.set_yticks(places, list(ordered), fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(1.0, 1e19)
    dress(axes, "first round for which the bound is claimed", "")
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return figure


def theory_looseness(page: Page) -> Figure:
    """Draw where the regret bound loses."""
    return kh.plots.looseness(page["loss"])


def theory_rate(page: Page) -> Figure:
    """Draw the estimation error and the formula of theorem 1."""
    error = page["error"].sel(time=page["error"].time >= 10)
    figure, axes = canvas()
    axes.loglog(error.time, error, color=BLUE, label="largest error of 20 runs")
    late = page["error"].time.values >= 10
    axes.loglog(error.time, page["formula"][late], color=RED, label="formula of theorem 1")
    dress(axes, "round", "$|\\hat\\eta - \\eta|$ of arm 1")
    beside(axes)
    return figure


def theory_signs(page: Page) -> Figure:
    """Draw the mean of x'mu by y where contexts are random signs."""
    y, x, values = page["y"], page["x"], page["seen"].values[:, 0]
    edges = np.linspace(-3, 3, 31)
    inside = np.digitize(y, edges)
    means = [x[inside == i].mean() for i in range(1, len(edges))]
    slope = float((y * values).sum() / (y * y).sum())
    figure, axes = canvas()
    middles = (edges[:-1] + edges[1:]) / 2
    axes.plot(middles, means, "o", color=BLUE, markersize=4, label="mean of x'mu by y")
    axes.plot(edges, np.tanh(edges), color=GREY, linewidth=1, label="tanh y")
    axes.plot(edges, slope * edges, color=RED, label="y'eta")
    dress(axes, "y", "expected reward of arm 1")
    beside(axes)
    return figure


def theory_fig2(page: Page) -> Figure:
    """Draw the study's own figure of its table."""
    with xr.open_dataset(Path("report") / "fig2" / "data.nc", engine="h5netcdf") as stored:
        figure: Figure = page["study"].figure(thinned(stored.load(), 7))
    figure.set_size_inches(8.0, 2.8)
    return figure


def certificate_bounds(page: Page) -> Figure:
    """Draw the certificate of the page beside its runs and the trivial bound."""
    runs = page["check"].curves.isel(replication=slice(8), time=slice(None, None, 2))
    figure: Figure = kh.plots.certificate(page["bound"], runs)
    return figure


# -- the constant of the regret -------------------------------------------------------------------


def asymptote_regret(page: Page) -> Figure:
    """Draw simulated and predicted regret over the logarithm of time."""
    figure = kh.plots.regret(thinned(page["runs"], 2), asymptote=page["world"])
    axes = figure.axes[0]
    axes.set_xscale("log")
    axes.set_xlim(10, 10_000)
    return figure


PICTURES: dict[str, tuple[Callable[[Page], Figure], ...]] = {
    "index.md": (front,),
    "tutorials/research.md": (
        research_world,
        research_regret,
        research_policies,
        research_growth,
        research_worst,
        research_seeing,
    ),
    "tutorials/online.md": (
        online_learning,
        online_probability,
        online_late,
        online_effects,
        online_missing,
        online_servers,
        online_evaluation,
    ),
    "how-to/asymptote.md": (asymptote_regret,),
    "how-to/records.md": (records_effects,),
    "how-to/certificate.md": (certificate_bounds,),
    "how-to/theory.md": (theory_looseness,),
    "tutorials/theory.md": (
        theory_constants,
        theory_length,
        theory_ellipsoid,
        theory_starts,
        theory_rate,
        theory_signs,
        theory_fig2,
    ),
}


# -- pages ----------------------------------------------------------------------------------------


def digest(text: str) -> str:
    """Return a short digest of the blocks of a page, code and what it prints."""
    blocks = "".join("".join(found) for found in FENCE.findall(text))
    return hashlib.sha256(blocks.encode()).hexdigest()[:16]


def executed(path: Path) -> tuple[Page, str]:
    """Run the blocks of a page, and return its variables and its text with what they print."""
    page: Page = {"__name__": "page"}
    printed = io.StringIO()

    def again(found: re.Match[str]) -> str:
        nonlocal printed
        if found[1] == "python":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(found[2], str(path), "exec"), page)
        return f"```text\n{printed.getvalue()}```" if found[1] == "text" else found[0]

    return page, FENCE.sub(again, path.read_text())


def refresh(name: str) -> None:
    """Run a page, write what it prints, and draw its pictures.

    The digest of the page goes into each picture: a test compares it, and finds the pictures of a
    page that has changed since.
    """
    path = DOCS / name
    page, text = executed(path)
    path.write_text(text)
    for draw in PICTURES[name]:
        made = io.StringIO()
        draw(page).savefig(made, format="svg", metadata={"Date": None, "Description": digest(text)})
        file = FOLDER / f"{draw.__name__.replace('_', '-')}.svg"
        file.write_text(lighter(made.getvalue()))


def lighter(svg: str) -> str:
    """Round the coordinates of curves and markers to a hundredth of a point."""
    return CURVE.sub(lambda line: re.sub(r"(\.\d\d)\d+", r"\1", line[0]), svg)


# -- pictures of other pages ----------------------------------------------------------------------


def prices() -> None:
    """Draw what learning costs, and what not seeing costs."""
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
    """Draw a figure of the paper, and five of our own; three need tables of the package index."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("fig3", "missing", "warfarin", "trial", "evaluation", "sensors"):
            settings = Settings()
            job = Job(STUDIES[name], settings, STUDIES[name].cells(settings))
            run(job, Path(folder))
            made = Path(folder) / name / "figure.png"
            (FOLDER / f"{name}.png").write_bytes(made.read_bytes())


def main() -> None:
    """Make all pictures, or those of some pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="page", help=", ".join(PICTURES))
    parser.add_argument("--studies", action="store_true", help="also the pictures of studies")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chdir(folder), mpl.rc_context(STYLE):
        for name in given.pages or PICTURES:
            refresh(name)
    if given.studies:
        prices()
        studies()


if __name__ == "__main__":
    main()
