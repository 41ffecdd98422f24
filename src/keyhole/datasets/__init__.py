"""Public data sets: found in a folder, bundled with scikit-learn, or downloaded and verified."""

from keyhole.datasets.catalogue import CATALOGUE, Source
from keyhole.datasets.download import fetch
from keyhole.datasets.loading import cache_folder, find, load, names, read_csv

__all__ = ["CATALOGUE", "Source", "cache_folder", "fetch", "find", "load", "names", "read_csv"]
