"""Public data: in a folder, bundled with scikit-learn, from OpenML, or inside other packages."""

from keyhole.datasets.catalogue import CATALOGUE, Source
from keyhole.datasets.download import fetch
from keyhole.datasets.loading import find, load
from keyhole.datasets.packaged import TABLES, fetch_table, table
from keyhole.datasets.reading import cache_folder, candidates, read_csv
from keyhole.datasets.wheels import PackagedTable

__all__ = [
    "CATALOGUE",
    "TABLES",
    "PackagedTable",
    "Source",
    "cache_folder",
    "candidates",
    "fetch",
    "fetch_table",
    "find",
    "load",
    "read_csv",
    "table",
]
