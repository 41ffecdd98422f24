"""The page and the plot of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from scipy.stats import chisquare

from benchmarks.before import table
from benchmarks.peers import work

CELLS = [f"{n}x{d}" for n, d in work.CELLS]
ALL_CELLS = CELLS + [f"{n}x{d}" for n, d in work.ALONE]
VOWPAL_WABBIT, PARSED = ["vowpalwabbit-squarecb", "vowpalwabbit-regcb"], "vowpalwabbit-parsed"
# A library samples another distribution if its counts would be this unlikely to come of the right.
WRONG = 1e-6
# Asked for: online over the fastest exact Thompson sampler and over Vowpal Wabbit, with the
# probability read as a share of without, and simulation.
ONLINE, ONLINE_VW, READ = 30, 3, 0.6
SIMULATION = {10: 1000, 20: 1000, 80: 300, 200: 100}


# Rounds from arrays with missing entries, over Vowpal Wabbit's from parsed examples.
RECORDS_TARGET = 3


def record_row(found: dict[str, Any], name: str) -> list[str]:
    """Return a row of the table of records: rates, and ratios to Vowpal Wabbit's."""
    rates = {key: answer.get("rate", np.nan) for key, answer in found["records"].items()}
    peers = ("vowpalwabbit-parsed", "vowpalwabbit")
    ratios = [f"{rates[name] / rates[peer]:.1f}" if peer in rates else "" for peer in peers]
    return [
        name,
        f"{rates[name]:,.0f}",
        f"{found['records'][name].get('cold', np.nan):,.0f}",
        *ratios,
    ]


def write(found: dict[str, Any], out: Path) -> None:
    """benchmarks.md and figures/benchmarks.svg."""
    judged = {name: judge(found, name) for name in found["exact"]}
    exact = [n for n, one in judged.items() if one.get("exact") and not n.startswith("keyhole")]
    plot(found, exact, out / "figures")
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    regrets = next(iter(found["regret"].values()))
    text = pages.get_template("page.md.j2").render(
        found=found,
        online=ONLINE,
        online_vw=ONLINE_VW,
        read=READ,
        readings=[reading(found, cell) for cell in ALL_CELLS],
        records=[record_row(found, name) for name in found.get("records", {})],
        records_target=RECORDS_TARGET,
        changes=table.rows(found["before"]["measures"]) if "before" in found else [],
        starts=[started(name, answer) for name, answer in found["start"].items()],
        ratios=[ratio(found, exact, cell) for cell in CELLS],
        cells=ALL_CELLS,
        rates=column(found, "rate", "{:,.0f}"),
        memory=column(found, "memory", "{:,.2f}"),
        failed=failures(found),
        decisions=[decision(found, judged, name) for name in found["regret"]],
        replications=len(regrets["regret"]),
        horizon=regrets["rounds"],
        regret_cell=work.REGRET_CELL,
        draws=work.DRAWS,
        wrong=WRONG,
        floors=[floor(found, cell) for cell in CELLS],
    )
    (out / "benchmarks.md").write_text(text)


def judge(found: dict[str, Any], name: str) -> dict[str, Any]:
    """How far a library's choice frequencies are from the exact probabilities."""
    answer: dict[str, Any] = found["exact"][name]
    if "failed" in answer:
        return answer
    pairs = zip(answer["counts"], found["exact_probabilities"], strict=True)
    shares = [(np.array(counts), np.array(p)) for counts, p in pairs]
    distances = [0.5 * np.abs(c / c.sum() - p).sum() for c, p in shares]
    unlikely = min(float(chisquare(c, c.sum() * p / p.sum()).pvalue) for c, p in shares)
    return {"distance": max(distances), "exact": unlikely > WRONG}


def fastest(found: dict[str, Any], names: list[str], cell: str) -> tuple[str, float]:
    """Who is fastest online among those that could do the cell."""
    cells = {name: found["speed"].get(name, {}).get(cell, {}) for name in names}
    done = {name: float(one["rate"]) for name, one in cells.items() if "rate" in one}
    return max(done.items(), key=lambda item: item[1]) if done else ("none", np.nan)


def ratio(found: dict[str, Any], exact: list[str], cell: str) -> list[str]:
    """Return a row of the first table."""
    ours = found["speed"]["keyhole"][cell]["rate"]
    name, peer = fastest(found, exact, cell)
    _, vw = fastest(found, VOWPAL_WABBIT, cell)
    one, two = (found["simulation"][cell][workers] for workers in "12")
    target = SIMULATION[int(cell.split("x")[1])]
    return [
        cell, f"{ours:,.0f}", f"{peer:,.0f} ({name})", f"{ours / peer:,.0f}", f"{vw:,.0f}",
        f"{ours / vw:,.1f}", f"{one:,.0f}", f"{two:,.0f}", f"{two / peer:,.0f}", f"{target:,}",
    ]  # fmt: skip


def reading(found: dict[str, Any], cell: str) -> list[str]:
    """Return a row on the cost of reading the probability of each decision."""
    plain, read = (found["speed"][name][cell]["rate"] for name in ("keyhole", "keyhole-read"))
    _, parsed = fastest(found, [PARSED], cell)
    row = [f"{plain:,.0f}", f"{read:,.0f}", f"{read / plain:.0%}"]
    # The largest cells are Keyhole's alone.
    beside = ["-", "-"] if np.isnan(parsed) else [f"{parsed:,.0f}", f"{read / parsed:,.1f}"]
    return [cell, *row, *beside]


def started(name: str, answer: dict[str, Any]) -> list[str]:
    """Return a row on the first decision of a process."""
    if "failed" in answer:
        return [name, answer["failed"], "-"]
    return [name, f"{answer['seconds']:.2f}", f"{answer['memory']:,.0f}"]


def column(found: dict[str, Any], field: str, form: str) -> dict[str, list[str]]:
    """Return one number for each cell, by library."""
    return {
        name: [
            form.format(answers[cell][field]) if field in answers.get(cell, {}) else "-"
            for cell in ALL_CELLS
        ]
        for name, answers in found["speed"].items()
    }


def failures(found: dict[str, Any]) -> list[str]:
    """Return the failed measurements with their reasons."""
    return [
        f"{name} at {cell} ({one['failed']})"
        for name, answers in found["speed"].items()
        for cell, one in answers.items()
        if "failed" in one
    ]


def decision(found: dict[str, Any], judged: dict[str, Any], name: str) -> list[str]:
    """Return a row on the regret and the exactness of a library's decisions."""
    answer, one = found["regret"][name], judged.get(name)
    if "failed" in answer:
        return [name, answer["failed"], "-", "-", "-"]
    regrets = np.array(answer["regret"])
    error = regrets.std(ddof=1) / np.sqrt(len(regrets))
    said, distance = "not Thompson sampling", "-"
    if one is not None:
        said = "exactly" if one.get("exact") else "**no**"
        distance = f"{one['distance']:.3f}" if "distance" in one else one["failed"]
    shown = f"{regrets.mean():.4f} ± {error:.4f}"
    return [name, shown, f"{answer['seconds']:,.1f}", distance, said]


def floor(found: dict[str, Any], cell: str) -> list[str]:
    """Return a row on the least time of a round."""
    one = found["limits"][cell]
    least = one["least"]
    took = 1.0 / found["simulation"][cell]["1"]
    parts = (one["normals"], one["arithmetic"], one["memory"], least, took)
    nanoseconds = [f"{1e9 * part:,.0f}" for part in parts]
    return [cell, f"{one['products']:.1f}", *nanoseconds, f"{least / took:.0%}"]


def plot(found: dict[str, Any], exact: list[str], folder: Path) -> None:
    """Draw rounds per second in every cell, on a log scale; dotted: not the exact posterior."""
    mpl.use("agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
    x = np.arange(len(CELLS))
    simulated = [found["simulation"][cell]["2"] for cell in CELLS]
    online = [found["speed"]["keyhole"][cell]["rate"] for cell in CELLS]
    axes.plot(x, simulated, "o-", color="#0b5394", lw=2.5, label="Keyhole, simulation")
    read = [found["speed"]["keyhole-read"][cell]["rate"] for cell in CELLS]
    axes.plot(x, online, "o--", color="#3d85c6", lw=2.5, label="Keyhole, online")
    axes.plot(x, read, "o:", color="#6fa8dc", lw=2.5, label="Keyhole, online,\nprobability read")
    left_out = ("keyhole", "keyhole-logged", "keyhole-read", "contextualbandits", *VOWPAL_WABBIT)
    colors = iter(mpl.colormaps["Dark2"].colors)  # type: ignore[attr-defined]
    for name, answers in found["speed"].items():
        if name not in left_out:
            rates = [answers.get(cell, {}).get("rate", np.nan) for cell in CELLS]
            style = "-" if name in exact else ":"
            axes.plot(x, rates, style, marker=".", lw=1.3, color=next(colors), label=name)
    axes.set_yscale("log")
    axes.set_xticks(x, [cell.replace("x", " x ") for cell in CELLS])
    axes.set_xlabel("arms x dim")
    axes.set_ylabel("rounds per second")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=9)
    # Without a date and random names, the same numbers make the same file.
    with mpl.rc_context({"svg.hashsalt": "keyhole"}):
        figure.savefig(folder / "benchmarks.svg", metadata={"Date": None})
    plt.close(figure)
