"""`KnownIds` never calls an id new that was added, and hardly ever calls a new one known."""

import pytest

from keyhole.service import DecideRequest, Service
from keyhole.service.known import BITS_OF_AN_ID, SIZES, KnownIds
from tests.service.http.serving import PLAIN


def filled(n: int) -> KnownIds:
    known = KnownIds()
    known.is_complete = True
    for k in range(n):
        known.add(f"o-{k}")
    return known


@pytest.mark.parametrize("n", [0, 1, 1_000, 28_192, (SIZES[0] + SIZES[1]) // BITS_OF_AN_ID])
def test_what_was_added_is_never_new_and_most_others_are(n: int) -> None:
    known = filled(n)
    assert not any(known.is_new(f"o-{k}") for k in range(n))
    wrong = sum(not known.is_new(f"x-{k}") for k in range(20_000)) / 20_000
    # (1 - exp(-2/16))^2 for each full filter, and 5 standard errors: each process hashes anew.
    expected = 0.0138 * len(known._filters)
    assert wrong <= expected + 5.0 * (expected / 20_000) ** 0.5


def test_all_is_perhaps_known_until_the_database_was_read() -> None:
    known = KnownIds()
    assert not known.is_new("a")
    known.add_all(["a", "b"])
    assert not known.is_complete
    assert known.last == "b"
    known.add_all([])
    assert known.is_complete
    assert known.is_new("c")
    assert not known.is_new("b")


def test_memory_is_bounded() -> None:
    known = filled(0)
    known._left = 0
    for k in range(5):
        known.add(f"o-{k}")
        known._left = 0
    assert sum(len(bits) for bits, _ in known._filters) == sum(SIZES) // 8


def test_an_id_of_before_a_start_is_found_while_the_ids_are_read(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhole.service.service.IDS_AT_ONCE", 3)
    folder = str(tmp_path)
    with Service(folder) as service:
        service.create("home", PLAIN)
        for k in range(8):
            service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=f"o-{k}"))
    with Service(folder) as service:
        known = service.loop("home").events.known
        for step in range(5):
            again = service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=f"o-{step}"))
            assert again.is_replay
            service.decide("home", DecideRequest(context=[1.0, 0.5], event_id=f"a-{step}"))
            assert known.is_complete == (step > 3)
            service.tick()
        assert not any(known.is_new(f"{one}-{k}") for one, k in [("o", 7), ("a", 0), ("a", 4)])
        assert known.is_new("o-8")
