"""A short online session: three treatments, a noisy record of each patient, rewards that come late.

What drives the outcome is a hidden state of 6 numbers; the program sees 4 noisy mixtures of them.
"""

import numpy as np

import keyhole as kh

ARMS = ["aspirin", "rest", "surgery"]


def main() -> None:
    """Treat 3,000 patients and print what was decided and learned."""
    rng = np.random.default_rng(1)
    sensing = rng.standard_normal((4, 6))
    effects = dict(zip(ARMS, rng.standard_normal((3, 6)), strict=True))

    bandit = kh.Bandit(kh.ThompsonSampling(), arms=ARMS, dim=4, seed=7)
    waiting: list[tuple[kh.Decision, float]] = []
    earned = {"chosen": 0.0, "at random": 0.0}

    print("  patient  treatment  chosen with probability  outcome")
    for patient in range(1, 3001):
        state = rng.standard_normal(6)
        record = sensing @ state + 0.5 * rng.standard_normal(4)
        decision = bandit.choose(record)
        outcome = float(state @ effects[str(decision.arm)] + rng.standard_normal())
        waiting.append((decision, outcome))
        earned["chosen"] += outcome
        earned["at random"] += float(np.mean([state @ effect for effect in effects.values()]))
        if len(waiting) == 25:  # outcomes are reported once a week
            for past, result in waiting:
                bandit.learn(past, result)
            waiting.clear()
        if patient in (1, 10, 100, 300, 1000, 3000):
            print(
                f"  {patient:7d}  {decision.arm:9s}  {decision.probability:23.3f}  {outcome:7.2f}"
            )

    print(f"\n{bandit}")
    print("treated:", ", ".join(f"{arm} {n}" for arm, n in bandit.counts.items()))
    print("noise of an outcome given a record:", bandit.posterior.noise_scale().round(2))
    for way, total in earned.items():
        print(f"mean outcome {way}: {total / 3000:.2f}")


if __name__ == "__main__":
    main()
