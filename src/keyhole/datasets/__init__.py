"""Public data sets: found in a folder, bundled with scikit-learn, or downloaded and verified."""

from keyhole.datasets.catalogue import CATALOGUE, Source
from keyhole.datasets.download import fetch
from keyhole.datasets.loading import find, load
from keyhole.datasets.reading import cache_folder, read_csv

__all__ = ["CATALOGUE", "Source", "cache_folder", "fetch", "find", "load", "read_csv"]
