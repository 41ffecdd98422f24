"""Public data: from a folder, scikit-learn, OpenML or other packages."""

from keyhole.lab.datasets.catalogue import CATALOGUE, Source
from keyhole.lab.datasets.download import fetch
from keyhole.lab.datasets.loading import find, load
from keyhole.lab.datasets.open_bandit import daily_shares, open_bandit
from keyhole.lab.datasets.packaged import TABLES, fetch_table, table
from keyhole.lab.datasets.reading import cache_folder, candidates, read_csv
from keyhole.lab.datasets.wheels import PackagedTable

__all__ = [
    "CATALOGUE",
    "TABLES",
    "PackagedTable",
    "Source",
    "cache_folder",
    "candidates",
    "daily_shares",
    "fetch",
    "fetch_table",
    "find",
    "load",
    "open_bandit",
    "read_csv",
    "table",
]
