"""Power loss: writes that were not synced are lost in part, and nothing acknowledged is."""

from tests.service.losing import losses


def test_a_power_loss_loses_nothing_that_was_acknowledged() -> None:
    """P1."""
    lost, acknowledged = losses(30, "FULL")
    assert lost == 0
    assert acknowledged > 300, "some 28 a loss: a service that answers nothing would lose nothing"


def test_without_syncs_something_is_lost() -> None:
    """The control: the disk and the checker find what `synchronous=OFF` does not promise."""
    lost, _ = losses(12, "OFF")
    # 45 of 50 lost something: with nine in ten, fewer than 6 of 12 have a probability of 5e-5.
    assert lost >= 6
