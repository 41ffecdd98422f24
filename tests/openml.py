"""A server on this machine that answers as OpenML does, for one data set."""

import gzip
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.datasets import _openml

from keyhole.lab.datasets import CATALOGUE, download


def arff(name: str, data_dir: Path) -> tuple[str, str]:
    """A data set as OpenML has it, and the name of its label."""
    source = CATALOGUE[name]
    frame = pd.read_csv(data_dir / source.file, dtype=str)
    label = source.label
    if name == "cardiotocography":
        # Recordings of one second: counts are rates. What is not used is there all the same.
        order = ("begin", "end", "LBE", "LB", "AC", "FM", "UC", "ASTV", "MSTV", "ALTV", "MLTV",
                 "DL", "DS", "DP", "DR", "Width", "Min", "Max", "Nmax", "Nzeros", "Mode", "Mean",
                 "Median", "Variance", "Tendency", *"ABCDEFGHIJ")  # fmt: skip
        extra = frame.assign(
            begin="1", end="2", LBE="0", DR="0", **dict.fromkeys("ABCDEFGHIJ", "0")
        )
        columns = {f"V{i}": extra[column] for i, column in enumerate(order, start=1)}
        frame, label = pd.DataFrame({**columns, "Class": frame["NSP"]}), "Class"
    classes = ",".join(sorted(frame[label].unique()))
    kinds = dict.fromkeys(frame.columns, "NUMERIC") | {label: f"{{{classes}}}"}
    head = "\n".join(f"@ATTRIBUTE {column} {kind}" for column, kind in kinds.items())
    body = frame.to_csv(index=False, header=False)
    return f"@RELATION {name}\n{head}\n@DATA\n{body}", label


class OpenML:
    """A server that answers for one data set, and can be told to misbehave."""

    def __init__(self, name: str, data_dir: Path) -> None:
        self.text, self.label = arff(name, data_dir)
        self.columns = [
            line.split()[1] for line in self.text.splitlines() if line.startswith("@ATTRIBUTE")
        ]
        self.name, self.requests = name, list[str]()
        self.cuts = 0  # how many downloads are still to be cut in the middle
        self.md5 = hashlib.md5(self.text.encode(), usedforsecurity=False).hexdigest()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                content = outer.answer(self.path)
                self.send_response(200)
                self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if "download" in self.path and outer.cuts:
                    outer.cuts -= 1
                    self.wfile.write(content[: len(content) // 2])
                    self.close_connection = True
                else:
                    self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> bytes:
        if "download" in path:
            return gzip.compress(self.text.encode())
        number = CATALOGUE[self.name].openml
        answers: dict[str, Any] = {
            f"/data/{number}": {
                "data_set_description": {
                    "id": str(number),
                    "name": self.name,
                    "version": "1",
                    "description": "as published",
                    "format": "ARFF",
                    "status": "active",
                    "file_id": "77",
                    "url": f"{self.address}/data/v1/download/77/{self.name}.arff",
                    "default_target_attribute": self.label,
                    "md5_checksum": self.md5,
                    "processing_date": "2020-01-01",
                }
            },
            f"/data/features/{number}": {
                "data_features": {
                    "feature": [
                        {
                            "index": str(i),
                            "name": column,
                            "data_type": "nominal" if column == self.label else "numeric",
                            "is_target": str(column == self.label).lower(),
                            # OpenML's answer for a number of the row, which is then no feature.
                            "is_ignore": "false",
                            "number_of_missing_values": "0",
                            "is_row_identifier": str(column == "lineNo").lower(),
                        }
                        for i, column in enumerate(self.columns)
                    ]
                }
            },
            f"/data/qualities/{number}": {
                "data_qualities": {
                    "quality": [
                        {"name": "NumberOfInstances", "value": str(CATALOGUE[self.name].n_rows)}
                    ]
                }
            },
        }
        return gzip.compress(json.dumps(answers[path]).encode())

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for template, path in {
            "_DATA_INFO": "/data/{}",
            "_DATA_FEATURES": "/data/features/{}",
            "_DATA_QUALITIES": "/data/qualities/{}",
        }.items():
            assert hasattr(_openml, template)
            monkeypatch.setattr(_openml, template, self.address + path)
        monkeypatch.setattr(download, "DESCRIPTION", self.address + "/data/{}")

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
