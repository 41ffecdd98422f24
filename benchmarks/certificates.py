"""Certificates beside simulation: `python -m benchmarks.certificates`, ten minutes on two cores.

Each row has a world, a horizon, the certificate over the trivial bound, and how many simulated runs
exceeded the certificate. The numbers are in docs/how-to/certificate.md.
"""

from __future__ import annotations

import argparse
import time

import keyhole as kh

# Arms, context_dim, dim, shared context, rounds of the burn-in (0: none), horizon, runs.
CASES = (
    (3, 4, 4, False, 0, 10_000, 10_000),
    (2, 6, 6, False, 0, 10_000, 2_000),
    (5, 10, 10, False, 0, 100_000, 300),
    (8, 3, 3, False, 0, 1_000_000, 20),
    (20, 4, 4, False, 30_000, 100_000, 100),
    (20, 10, 10, False, 30_000, 100_000, 100),
    (3, 4, 4, True, 10_000, 100_000, 300),
)


def main() -> None:
    """Print a row for each case and policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the runs, at least 2")
    share = parser.parse_args().share
    print("| arms | dim | context | burn-in | horizon | policy | certificate | / trivial |", end="")
    print(" runs | above | worst | mean | slack | s |\n" + "|---" * 14 + "|")
    for arms, context_dim, dim, shared, rounds, horizon, runs in CASES:
        world = kh.LinearWorld.random(
            n_arms=arms, context_dim=context_dim, dim=dim, shared_context=shared, seed=1
        )
        for policy in (kh.ThompsonSampling(v="oracle"), kh.Greedy()):
            begun = time.perf_counter()
            first = kh.audit.burn_in(world, policy, rounds=rounds, seed=3) if rounds else None
            found = kh.theory.certificate(world, policy, horizon, burn_in=first)
            check = kh.audit.check_certificate(
                world, policy, found, runs=max(2, int(share * runs)), seed=4
            )
            cells = (
                *(arms, dim, "shared" if shared else "own", f"{rounds:,}", f"{horizon:,}"),
                *("Thompson" if policy != kh.Greedy() else "Greedy", f"{found.value:,.0f}"),
                *(f"{found.ratio:.3f}", f"{check.runs:,}", check.violations),
                *(f"{check.worst:,.0f}", f"{check.mean:,.0f}", f"{check.slack:.1f}"),
                f"{time.perf_counter() - begun:.0f}",
            )
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
