"""Download of data sets from OpenML: verified first, then kept as a CSV file."""

from __future__ import annotations

import http.client
import queue
import re
import socket
import tempfile
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
from sklearn.datasets import fetch_openml

from keyhole import checks
from keyhole.errors import DataUnavailable, InvalidValue
from keyhole.files import replacing
from keyhole.lab.datasets.catalogue import CATALOGUE, Source
from keyhole.lab.datasets.reading import cache_folder, from_frame, read_csv
from keyhole.lab.tables import Dataset

# Timeout of a silent connection, in seconds.
PATIENCE = 30.0
# The address of OpenML's description of a data set, the first request of a download.
DESCRIPTION = "https://www.openml.org/api/v1/json/data/{}"


def fetch(name: str, *, again: bool = False, patience: float | None = None) -> Dataset:
    """Download a data set into the cache, unless it is there, and return it.

    A download is kept only if its shape, its class counts and the checksum of its content are
    right. An interrupted or wrong download leaves no file behind.

    Parameters
    ----------
    name : str
        A name of the catalogue.
    again : bool, default False
        Download the data set even if it is in the cache.
    patience : float, optional
        The seconds to wait for an answer of OpenML, by default 30.

    Returns
    -------
    Dataset
        The data set.

    Raises
    ------
    InvalidValue
        If there is no such data set, or it comes with scikit-learn.
    DataUnavailable
        If OpenML does not answer, or its answer is cut off.
    FileError
        If the downloaded table is not the published one.
    """
    if name not in CATALOGUE:
        raise checks.unknown("data set", name, CATALOGUE)
    source = CATALOGUE[name]
    if source.openml is None:
        raise InvalidValue(f"{name} need not be fetched: scikit-learn includes it")
    target = cache_folder() / source.file
    if target.exists() and not again:
        return source.verified(read_csv(target, label=source.label, source=source), target)
    frame = source.tidy(_openml(source, PATIENCE if patience is None else patience))
    origin = f"what OpenML sent as data set {source.openml}"
    data = from_frame(frame, source.label, source.name, origin, drop=source.drop)
    source.verified(data, origin)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(frame.to_csv(index=False).encode())
    return data


def _openml(source: Source, patience: float) -> pd.DataFrame:
    """Return the table as published by OpenML, with the label in its column."""
    try:
        _ask(DESCRIPTION.format(source.openml), patience)
        with tempfile.TemporaryDirectory() as folder, _patient(patience), warnings.catch_warnings():
            # Retries are announced as warnings; a failed download raises an error below.
            warnings.simplefilter("ignore")
            # The parser "pandas" fails on classes that are numbers (scikit-learn 1.9, pandas 3.1).
            bunch = fetch_openml(
                data_id=source.openml,
                data_home=folder,
                as_frame=True,
                parser="liac-arff",
                delay=0.5,
            )
    # URLError and timeouts are OSErrors. A wrong checksum of OpenML's is a ValueError. A truncated
    # answer ends too early, as HTTP or as gzip.
    except (OSError, http.client.HTTPException, ValueError, EOFError) as reason:
        raise DataUnavailable(
            f"{source.name} could not be downloaded from OpenML ({_short(reason)}). "
            f"Either put {source.file} into a folder and name it (data_dir, --data-dir or "
            f"KEYHOLE_DATA), or fetch it with a network: keyhole data fetch {source.name}"
        ) from None
    frame: pd.DataFrame = bunch.frame
    for column in frame.select_dtypes("category"):
        frame[column] = pd.to_numeric(frame[column].astype(str))
    return frame


def _ask(address: str, patience: float) -> None:
    """Return if the server answers at all, and raise OSError if it does not within `patience`.

    The timeout of a socket does not apply to name lookup, which can take half a minute without a
    network. The request therefore runs in a thread that is not joined.
    """
    answer: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def ask() -> None:
        try:
            urllib.request.urlopen(address, timeout=patience).close()
        except urllib.error.HTTPError as refusal:  # an answer, if not a good one
            refusal.close()
        except (OSError, http.client.HTTPException) as reason:
            answer.put(reason)
            return
        answer.put(None)

    threading.Thread(target=ask, daemon=True).start()
    try:
        reason = answer.get(timeout=patience)
    except queue.Empty:
        reason = TimeoutError(f"no answer within {patience:g} s")
    if reason is not None:
        raise reason


def _short(reason: Exception) -> str:
    if isinstance(reason, urllib.error.URLError) and isinstance(reason.reason, OSError):
        reason = reason.reason
    text = re.sub(r"^\[Errno -?\d+\] ", "", str(reason).strip()).splitlines()
    return text[0] if text else type(reason).__name__


@contextmanager
def _patient(seconds: float) -> Iterator[None]:
    """Set a timeout for silent connections: scikit-learn itself would wait forever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
