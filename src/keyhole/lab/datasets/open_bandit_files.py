"""The six tables of the Open Bandit data inside the package obp: 10,000 rows of each policy."""

from __future__ import annotations

from keyhole.lab.datasets.wheels import PackagedTable, read_frame

CAMPAIGNS = ("all", "men", "women")
POLICIES = {"random": "uniform choices", "bts": "Bernoulli Thompson sampling"}
# Columns of a table, and for each policy the size and the checksum of its file.
FILES = {
    "all": (
        89,
        {
            "random": (
                5_039_451,
                "7168295b6e0a9eabcf3392320a5dd434e542b68e705d5cd9491499af589812f1",
            ),
            "bts": (
                5_084_456,
                "0ad874e4dbf6902f0845dd478ad8dde5ef6903583d3ffaace78411bdad064106",
            ),
        },
    ),
    "men": (
        43,
        {
            "random": (
                3_336_811,
                "ede6d08c6877f99cd3770f7d09e26c738e6aa6de4445ccccfb1356ba5d06b1eb",
            ),
            "bts": (
                3_240_432,
                "db6d1f7ed2d591ba521533e45286d4c1fba7fe57a8ad2e80342210335f43c527",
            ),
        },
    ),
    "women": (
        55,
        {
            "random": (
                3_817_771,
                "e65f3bd3beb17664fa69cc129bf7bf852a775f8ffa630506e505fc905315bb34",
            ),
            "bts": (
                3_722_697,
                "e5d1b49a39b608585a2f3014a3f54970430cd37a495c1b73fceb85cdf428a5b8",
            ),
        },
    ),
}


def table_name(campaign: str, policy: str) -> str:
    """Return the name of a table in the catalogue.

    Parameters
    ----------
    campaign : str
        "all", "men" or "women".
    policy : str
        "random" or "bts".
    """
    return f"open-bandit-{campaign}-{policy}"


OPEN_BANDIT = tuple(
    PackagedTable(
        name=table_name(campaign, policy),
        title=f"10,000 items that a shop showed by {words}, with clicks (Open Bandit, {campaign})",
        package="obp",
        version="0.4.1",
        licence="Apache-2.0",
        member=f"obp/dataset/obd/{policy}/{campaign}/{campaign}.csv",
        file=f"{table_name(campaign, policy)}.csv",
        size=FILES[campaign][1][policy][0],
        sha256=FILES[campaign][1][policy][1],
        shape=(10_000, FILES[campaign][0]),
        read=read_frame,
    )
    for campaign in CAMPAIGNS
    for policy, words in POLICIES.items()
)
