"""The termination least-loss, by hand: what a kill loses follows from the victim rule."""

from __future__ import annotations

from varcap_talk import scheduler

FOUR = ("a 0 1000 4", "b 30 200 2", "d 40 300 4", "c 60 400 2")
"""At 100 s: a on machine 0, b and c on 1, d on 2; each has run for 100, 70, 60 and 40 s."""
STAYS = {"a": "0-1000@0", "b": "30-230@1", "c": "60-460@1", "d": "40-340@2"}
RULE = {"name": "checkpoint", "checkpoint_s": 20, "recovery_s": 10}
SHARED = {"machines": 3, "cores": 4, "capacity": "3 100:2", "termination": "least-loss"}


def test_lww_if_nothing_is_saved():
    assert scheduler(*FOUR, **SHARED) == scheduler(*FOUR, **SHARED | {"termination": "lww"})


def test_checkpoint_and_recovery_are_what_is_lost():
    # C + R = 30 s on 4 cores on each machine; of equals it is the least safe. d keeps 60 - 20 of its 300 s, recovers 10
    # and goes on where b and c were, when c ends
    assert scheduler(*FOUR, **SHARED, victim=RULE) == STAYS | {"d": "40-100@2x 460-730@1"}


def test_the_fewest_cores():
    # d loses 2 x 30 core s, the machine of b and c 4 x 30; b ends first
    told = scheduler(*FOUR[:2], "d 40 300 2 memory=0", FOUR[3], **SHARED | {"nodes": "dedicated"}, victim=RULE)
    assert told["d"].startswith("40-100@") and told["d"].endswith("x 230-500@1")


def test_one_that_has_hardly_run():
    # 15 s are too short for a checkpoint: d loses them, 4 x 15 core s, and begins again
    told = scheduler(*FOUR[:2], "d 85 300 4", FOUR[3], **SHARED, victim=RULE)
    assert told["d"].startswith("85-100@2x ") and told["d"].endswith("460-760@1")
