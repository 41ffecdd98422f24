"""The tables of the database.

    loop(id, name, draw_key, settings, run)             a loop, and the secret of its draws
    log(loop, seq, at, kind, event, body)               rows, as `keyhole.online` defines them
    event(loop, event, seq, request, state, ...)        what became of each event
    reward(loop, event, reward_id, seq, value, counts)  the rewards of each event
    snapshot(loop, seq, fingerprint, sha256, model)     a loop as it was after a row
    note(name, value)                                   for the next start: archived rows, keys

The log is the truth. `event` and `reward` are indexes of it, written in the same transaction.
"""

from __future__ import annotations

# "Keyh": marks a database as one of ours.
APPLICATION = 0x4B657968
VERSION = 1

SCHEMA = """
CREATE TABLE loop(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    draw_key BLOB NOT NULL, settings BLOB NOT NULL, run TEXT NOT NULL);
CREATE TABLE log(
    loop INTEGER NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, event TEXT,
    body BLOB NOT NULL, PRIMARY KEY(loop, seq)) WITHOUT ROWID;
CREATE TABLE event(
    loop INTEGER NOT NULL, event TEXT NOT NULL, seq INTEGER NOT NULL, request BLOB NOT NULL,
    state INTEGER NOT NULL, due REAL, learned REAL, learns INTEGER NOT NULL, last INTEGER,
    arm TEXT NOT NULL, PRIMARY KEY(loop, event)) WITHOUT ROWID;
CREATE INDEX event_due ON event(loop, due) WHERE due IS NOT NULL;
CREATE TABLE reward(
    loop INTEGER NOT NULL, event TEXT NOT NULL, reward_id TEXT NOT NULL, seq INTEGER NOT NULL,
    value REAL NOT NULL, counts INTEGER NOT NULL,
    PRIMARY KEY(loop, event, reward_id)) WITHOUT ROWID;
CREATE TABLE snapshot(
    loop INTEGER NOT NULL, seq INTEGER NOT NULL, fingerprint TEXT NOT NULL, sha256 BLOB NOT NULL,
    model BLOB NOT NULL, PRIMARY KEY(loop, seq)) WITHOUT ROWID;
CREATE TABLE note(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
# Two transactions that together change nothing, and need as much space as some decisions. No loop
# has the number 0.
TRIALS = (
    "INSERT OR REPLACE INTO snapshot VALUES (0, 0, '', x'', zeroblob(65536))",
    "DELETE FROM snapshot WHERE loop = 0",
)

LOG = "INSERT INTO log VALUES (?,?,?,?,?,?)"
EVENT = "INSERT OR REPLACE INTO event VALUES (?,?,?,?,?,?,?,?,?,?)"
REWARD = "INSERT INTO reward VALUES (?,?,?,?,?,?)"
