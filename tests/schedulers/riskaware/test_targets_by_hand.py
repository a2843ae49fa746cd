"""The target strategies worked out by hand: queues, targets, mapping, M_use, changes, early ends; and where the text of
the riskaware paper and its authors' program differ.
"""

from __future__ import annotations

import pytest
from by_hand import blocks_of
from machine_talk import Talk, follow, planner, talk_of

# targets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alive", "expected", "rules"),
    [
        (10, 6, {"always": 2}), (9, 5, {"always": 2}), (1, 1, {}), (0, 0, {}), (3, 3, {"always": 5}),
        (10, 3, {"always": 2, "usable": 3}), (4, 4, {"usable": 7}),
        (8, 3, {"always": 3, "paper": True}), (2, 2, {"always": 3, "paper": True}), (8, 1, {"paper": True}),
    ],
)  # fmt: skip
def test_m_use_at_first(alive, expected, rules):
    talk = planner(10, 1, {}, alive=alive, **({"usable": None} | rules))
    assert talk.planner.usable == expected
    assert list(talk.planner.machines_alive()) == list(range(alive))


# Eq. 1 counted from 0 is floor(C M_use), or M_use - 1 for C = 1; packs begin at the first machine of one, and those of
# the paper at the nearest multiple of 5 that is a machine
EQ_1 = [(4, 0.0, 0), (4, 0.249, 0), (4, 0.25, 1), (4, 0.5, 2), (4, 0.999, 3), (4, 1.0, 3), (1, 0.7, 0), (7, 0.5, 3)]
PACKS = [(4, 0.9, 0), (4, 1.0, 0), (9, 1.0, 0), (10, 0.49, 0), (10, 0.5, 5), (10, 1.0, 5), (14, 0.99, 5)]
PACKS += [(15, 0.33, 0), (15, 0.34, 5), (15, 0.67, 10), (15, 1.0, 10)]
NEAREST = [(20, 0.0, 0), (20, 0.10, 0), (20, 0.14, 0), (20, 0.15, 5), (20, 0.37, 5), (20, 0.40, 10), (20, 0.60, 10)]
NEAREST += [(20, 0.90, 15), (20, 1.0, 15), (3, 1.0, 0), (4, 1.0, 0), (6, 1.0, 5), (7, 0.5, 5)]


@pytest.mark.parametrize(
    ("rules", "cases"),
    [({}, EQ_1), ({"pack": 5}, PACKS), ({"pack": 5, "paper": True}, NEAREST)],
    ids=["equation 1", "packs", "packs of the paper"],
)
def test_the_target(rules, cases):
    for usable, category, target in cases:
        talk = planner(20, 1, {10: category}, usable=usable, **rules)
        assert talk.at(0, "a 10 1") == f"a@{target}", (usable, category)


def busy(distance, *free_at, category) -> Talk:
    """Machines of one core that are free at these times; a job of 7 s has the category to be looked at."""
    count = len(free_at)
    own = {float(end): (m + 0.5) / count for m, end in enumerate(free_at) if end}
    assert len(own) == sum(end > 0 for end in free_at), "lengths tell the machines"
    talk = planner(count, 1, own | {7.0: category}, distance=distance)
    decisions = talk.at(0, *(f"m{m} {end} 1" for m, end in enumerate(free_at) if end))
    assert decisions == " ".join(f"m{m}@{m}" for m, end in enumerate(free_at) if end)
    return talk


@pytest.mark.parametrize(
    ("distance", "free_at", "machine"),
    [
        (2, (0, 0, 0, 0, 0), 2),
        (2, (0, 0, 91, 0, 0), 3),
        (2, (0, 0, 91, 92, 0), 1),
        (2, (0, 90, 91, 92, 0), 4),
        (2, (0, 90, 91, 92, 93), 0),
        (2, (96, 95, 94, 93, 92), 4),  # the least stretch
        (2, (96, 95, 91, 93, 92), 2),
        (2, (96, 90, 91, 93, 92), 1),
        # none farther than the distance
        (1, (0, 95, 94, 93, 0), 3),
        (0, (0, 95, 94, 93, 0), 2),
    ],
)
def test_machines_are_probed_around_the_target(distance, free_at, machine):
    talk = busy(distance, *free_at, category=0.5)
    talk.at(1, "x 7 1")
    assert talk.plan("x") == (machine, max(1, free_at[machine]))


RULES = blocks_of("""
a job is planned in the earliest interval with room
  # beside b, in the middle; then just what is left beside it; one second more goes to the end. b and e leave nothing
  # before 40, c nothing before 50; f, g and h use all until 54
  1 x 4
  0: a 10 4, b 30 2, c 10 4 -> a@0; b 0 10; c 0 40
  1: d 20 2, e 10 2, f 11 2, g 5 1; d 0 10; e 0 30; f 0 50; g 0 50
  10 -> b@0 d@0
  30 -> e@0
  36: h 4 1, i 14 1 ->; h 0 50; i 0 54
ties go to the target, {the second|the last} machine
  # three at 50: all machines are free then
  3 x 1, 50: {0.5|1}, 7: {0.5|1}, distance=2
  0: j 50 1, k 50 1, l 50 1
  1: x 7 1; x {1|2} 50
{target stretch takes its target though another is earlier|asap wants a start at release}
  # c: (2, 2.1) on (0, 1); d: (3, 2.1). e has machine 0 at once; f is 40 s late there, 2 <= 2.1, while 1 is free
  2 x 1, 10: 0, 11: 1, 40: 0, distance=1, limit={0.0|1.0}
  0: a 10 1, b 11 1, c 10 1, d 10 1; c 0 10; d 1 11; stretch 2.1
  22: e 40 1, f 40 1, g 11 1; e 0 22; f {0 62|1 22}; g 1 {22|62}
an empty machine is taken whatever the stretch
  # released at 3, here at 10: stretch 2 on both 2 and 0, which are empty
  3 x 1, 50: 0.5, 7: 0.5, distance=1
  0: a 50 1
  10: x 7 1 3 -> x@2; stretch 2
M_use grows with the utilisation and shrinks with it
  # C = 1: always the last machine that may be used. 1/1, then 1/2; at 2 s 3/3, then 3/4. c ends: 3/5, 3/4 and 2/3 are
  # too little, 2/2 is not; d runs on
  adapting 5 x 1, usable=1
  0: a 200 1; usable 2
  1: b 201 1; b 1 1; usable 3
  2: c 48 1; c 2 2; usable 4
  3: d 202 1; d 3 3; usable 5
  50 ->; usable 2; ends d 205
{0.80 itself does not shrink|less than 0.80 shrinks}
  # 5/5 grows to 2; then 8 of 10 stays, 7 of 10 does not
  adapting 4 x 5, usable=1
  0: a 300 5, b 200 {3|2}; b 1 0; usable {2|1}
{0.95 itself does not grow|more than 0.95 grows}
  adapting 4 x 20, usable=1
  0: a 300 {19|20}; usable {1|2}
a machine with a job that waits counts as full
  # the start of c is an update: 2 of 4 cores are in use, but b waits, so 1 and then 1/2
  adapting 4 x 4, usable=1
  0: a 300 1, b 10 4; b 0 300; usable 1
  0: c 50 1; usable 2
a start goes before an end of the same time
  # x stays on machine 2. At 10 s b starts, 36 of 40 cores; then a and c end, 35. After a, with b waiting, it were 39
  3 x 20, 200: 0.7, 10: 0, 300: 0, 9: 0.6, 50: 0.6, always=2, low=0.8, high=0.95
  0: x 200 20 -> x@2; usable 2
  0: a 10 1, y 300 19 -> a@0 y@0
  1: c 9 18 -> c@1
  2: b 50 16; b 1 10; usable 2
  10 -> b@1; usable 2
all that has not started is mapped anew by release
  # b begins again; a runs on; d was planned at 100 and is now behind b and c, released before it: (240 - 2) / 20
  2 x 1, 100: 0, 20: 0
  0: a 100 1, b 90 1
  1: c 30 1
  2: d 20 1; a 0 0; b 1 0; c 1 90; d 0 100
  10 alive=1 -> -b; b 0 100; c 0 190; d 0 220; ends a 100 b 190; stretch 238/20; usable 1
a job from before the window is probed for from machine 0
  # C = 1 and D+ = 0, but they go where there is room, among those that may be used; the fourth to the least stretch.
  # Killed, they are whole, and are mapped as others are; s has not run here: 60 s are left of it as before
  4 x 1, usable=3
  0: p 100 1 -10 90, q 100 1 -20 80, r 100 1 -30 70, s 100 1 -40 60 -> p@0 q@1 r@2; s 2 70; stretch 170/100
  0; ends p 90 q 80 r 70 s 130
  5 alive=1 -> -q -r; q 0 90; ends q 190; s 0 290; ends s 350
after an early end its machine is planned anew by planned start
  # b, d, then c
  2 x 2, 7: 0
  0: other 7 2, a 100 2, b 50 1, c 60 2, d 40 1, behind 7 2; b 1 100; c 1 150; d 1 100
  a ends 3 -> b@1 d@1; b 1 3; d 1 3; c 1 53; behind 0 7
  100 -> behind@0 c@1
section 4.5: {TargetASAP|PackedTargetASAP}
  # 'if three jobs were assigned to machines 0, 1, and 2 by TargetASAP, all three will be assigned to machine 0.'
  10 x 3, 10: 0.05, 11: 0.15, 12: 0.25, paper=true, pack={1|5}
  0: a 10 1, b 11 1, c 12 1 -> a@0 {b@1 c@2|b@0 c@0}
asap falls back to its target within the worst stretch, of the {paper|program}
  # c: 3 on its target, 2.8 on machine 1; nothing was worse than 1 so far, so the earlier one. Of the paper S+ is of
  # jobs that completed. d leaves machine 0 at 48, e machine 1 at 46: on the target f has (48 + 10 - 29) / 10 = 2.9 >
  # 2.8; g has (48 + 10 - 30) / 10 = 2.8 there, no more than the worst so far
  2 x 1, 20: 0, 18: 1, 10: 0, distance=1, paper={true|false}
  0: a 20 1, b 18 1, c 10 1 -> a@0 b@1; c 1 18; stretch {1|2.8}
  28: d 20 1, e 18 1; stretch 2.8
  29: f 10 1; f 1 46
  30: g 10 1; g 0 48
asap takes {the nearest machine where it starts at once|the lowest index of equal starts}
  # x has machine 2 as its target; 2, 3 and 1 are full. Killed 6 s after its release it has a stretch > 1 wherever it
  # starts: now there is room beside d and beside a; machine 3 is nearer, and 0 the lowest index of equal starts
  5 x 2, 100: 0.1, 101: 0.3, 102: 0.5, 103: 0.7, 5: 0.7, 10: 0.5, distance=2, paper={true|false}
  0: a 100 1, b 101 2, c 102 2, d 103 1, e 5 1, x 10 1 -> a@0 b@1 c@2 d@3 e@3 x@4
  6 alive=4 -> -x x@{3|0}
target stretch takes {the earliest start|the first within the worst} if its target is beyond the worst
  # q: 3.2, 3.4 and 3 on machines 1, 2 and 0. x: 4 on its target, 2.5 on machine 2, which is looked at before machine 0
  # with 2.1; on machine 1 from 30 on y has (30 + 15 - 20) / 15 = 1.7: within the worst
  3 x 1, 10: 0.1, 11: 0.5, 12: 0.9, 5: 0.5, 5.5: 0.1, 15: 0.5, 7.5: 0.9, distance=1, limit=0.0, paper={true|false}
  0: a 10 1, b 11 1, c 12 1, q 5 1; q 0 10
  14 -> q@0
  15: d 5.5 1, e 15 1, f 7.5 1, x 5 1 -> d@0 e@1 f@2; stretch 3; x {0 20.5|2 22.5}
  20: y 15 1; y 1 30
more machines, not all in use: {the plan of the paper stays|the program plans anew}
  # b waits on machine 0, nothing is on machine 1: U = 1/2, or 1 with b on machine 1. The machine that came is one like
  # the others
  3 x 1, 25: 0, 30: 1, 10: 0, alive=2, usable=2, distance=2, high=0.95, paper={true|false}
  0: a 25 1, d 30 1, b 10 1 -> a@0 d@1; b 0 25
  d ends 10
  12 alive=3 -> {; b 0 25; usable 2|b@1; b 1 12; usable 3}; alive 0 1 2
  13 alive=2 -> {b@1|}
a utilisation of just the threshold is not above it
  # 19 of 20 cores; then b waits for a: that is all of the machine
  2 x 20, 100: 0, 7: 0, alive=1, usable=1, high=0.95, distance=1, paper=true
  0: a 100 19 -> a@0
  1 alive=2 ->; usable 1
  2 alive=1
  3: b 7 2; b 0 100
  4 alive=2 -> b@1; usable 2
what has no room at the begin of the window {never starts|waits}
  2 x 2, 100: 0.5, distance=1, drop={true|false}
  0: a 100 2 -50 50, b 100 2 -40 60, c 100 1 -30 70 -> a@0 b@1; dropped{ 2|}
  10: d 100 1 ->; dropped
  50 -> {d@0|c@0 d@0}
""")


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    setup, *lines = RULES[name]
    follow(talk_of(setup), lines)


def test_jobs_of_one_date_go_by_the_numbers_in_their_ids():
    tie = planner(1, 1, {}).planner.tie
    assert sorted(["10", "9", "w2-3", "w10-1", "2"], key=tie) == ["2", "w2-3", "9", "10", "w10-1"]
