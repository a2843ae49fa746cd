"""First fit on machines that come and go, rule by rule, worked out by hand (docs/explanation/riskaware.md)."""

from __future__ import annotations

import numpy as np
import pytest
from by_hand import blocks_of
from machine_talk import Talk, follow

from batwatt.schedulers.riskaware.planners import FirstFitStrategy


def first_fit(machines: int, cores: int, alive: int | None = None, rng=None, as_published=False) -> Talk:
    talk = Talk(FirstFitStrategy(machines, cores, rng, as_published=as_published))
    assert talk.at(0, alive=machines if alive is None else alive) == ""
    return talk


RULES = blocks_of("""
an arrival goes to the first machine with room
  # 3 on m0; 2 do not fit there; 1 does; 4 need m2
  3 4
  0: a 10 3, b 10 2, c 10 1, d 10 4 -> a@0 b@1 c@0 d@2; ends a 10 b 10 c 10 d 10
after an end those that wait start by release date if they fit
  # 2 cores at 10 s: early does not fit, late and later do; early starts when b is done at 20
  1 4
  0: a 10 2, b 20 2
  1: late 5 1 1, early 5 3 0.5, later 5 1 2
  10 -> late@0 later@0; ends late 15 later 15
  20 -> early@0
ends at one date are looked at machine by machine
  # machine 0 is free first: one goes there, two has to wait for machine 1, of the same time
  2 2
  0: a 10 2, b 10 2
  1: one 5 1, two 5 2
  10 -> one@0 two@1
an end comes before an arrival and before a change
  # nobody is killed
  2 1
  0: a 10 1, b 10 1
  10 alive=1: c 5 1 -> c@0
fewer machines: the highest go and their jobs begin again
  # a and d on m0, b on m1, c on m2; m0 is free at 100: b first, from zero
  3 2
  0: a 100 1, b 100 2, c 100 2, d 100 1
  30 alive=1 -> -b -c; alive 0
  100 -> b@0; ends b 200
what is killed starts at once where there is room
  # machine 0 has been free since 20 s
  2 2
  0: a 20 2, b 100 2 -> a@0 b@1
  25 alive=1 -> -b b@0; ends b 125
capacity 0 and back
  2 2
  0: a 10 2
  5 alive=0: b 10 1 -> -a; alive
  6: c 10 2 ->
  100 ->
  101 alive=2 -> a@0 b@1
  111 -> c@0
a job from before the window runs its rest but starts again whole
  2 1
  100: x 30 1, old 200 1 10 110; ends old 210
  120 alive=1 -> -old
  130 -> old@0; ends old 330
one that ends early gives its cores back
  # what was planned for a does not happen
  1 2
  0: a 100 2, b 10 1, c 10 1
  a ends 40 -> b@0 c@0
  100 ->
  101: d 10 2 -> d@0
an end planned before a kill does not happen
  # b was to end at 100; it does at 150, and c starts then
  2 1
  0: a 50 1, b 100 1
  10 alive=1 -> -b
  50 -> b@0
  60: c 5 1
  149 ->
  150 -> c@0
as published the last room waits for the next end
  # b starts; a asks for all that is free on the emptiest and waits; c is thinner. 3 of the 4 cores of machine 1 go,
  # and then the last one is all there is. After an end whatever fits does, by release: at 6 s a on 1, at 10 s e on 0
  2 4
  0: b 10 3, a 10 4, c 20 1 -> b@0 c@0
  1: d 5 3, e 5 1 -> d@1
  6 -> a@1
  10 -> e@0
{as published |}what has no room at the begin of the window {never starts|waits}
  # b needs all there is on the emptiest machine: that is only an obstacle to what is released in the window
  2 2
  0: a 100 2 -50 50, b 100 2 -40 60, c 100 1 -30 70 -> a@0 b@1; dropped{ 2|}
  10: d 100 1 ->; dropped
  50 -> {d@0|c@0 d@0}
""")


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    size, *lines = RULES[name]
    follow(first_fit(*map(int, size.split()), as_published=name.startswith("as published")), lines)


# what is drawn ------------------------------------------------------------------------------------------------------


def test_as_published_looks_at_machines_in_an_order_shuffled_once():
    machines = 8
    talk = first_fit(machines, 2, rng=np.random.default_rng(3), as_published=True)
    order = np.repeat(np.argsort(np.random.default_rng(3).permutation(machines)), 2)[:machines]
    decisions = talk.at(0, *(f"j{i} {1000 - i} 1" for i in range(machines)))
    assert decisions == " ".join(f"j{i}@{m}" for i, m in enumerate(order))
    # the highest go, whatever the order: what runs on them is killed
    highest = [f"j{i}" for i, m in enumerate(order) if m >= 5]
    killed = [word[1:] for word in talk.at(1, alive=5).split() if word.startswith("-")]
    assert highest and killed == highest
    assert list(talk.planner.machines_alive()) == [0, 1, 2, 3, 4]
    # the lowest that are off come back
    talk.at(2, alive=6)
    assert list(talk.planner.machines_alive()) == [0, 1, 2, 3, 4, 5]


def test_as_the_text_random_machines_go():
    def gone(seed: int) -> tuple[int, ...]:
        talk = first_fit(10, 2, rng=np.random.default_rng(seed))
        talk.at(0, *(f"j{i} 100 2" for i in range(10)))
        decisions = talk.at(10, alive=7)
        alive = list(talk.planner.machines_alive())
        assert alive == sorted(alive) and len(alive) == 7
        # machine i had job i: those of the machines that went are killed and no other
        assert decisions == " ".join(f"-j{i}" for i in range(10) if i not in alive)
        return tuple(i for i in range(10) if i not in alive)

    sets = [gone(seed) for seed in range(20)]
    assert sets == [gone(seed) for seed in range(20)]
    # no machine is safe
    assert len(set(sets)) > 10 and set().union(*sets) == set(range(10))


def test_as_the_text_machines_are_looked_at_in_order_and_the_lowest_come_back():
    talk = first_fit(6, 1, rng=np.random.default_rng(0))
    assert talk.at(0, "a 100 1", "b 100 1") == "a@0 b@1"
    talk.at(1, alive=2)
    alive = set(talk.planner.machines_alive())
    talk.at(2, alive=4)
    assert set(talk.planner.machines_alive()) - alive == set(sorted(set(range(6)) - alive)[:2])
