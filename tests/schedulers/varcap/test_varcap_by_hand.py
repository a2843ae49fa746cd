"""The rules of docs/explanation/varcap.md, one by one, on examples worked out by hand.

A job is `name submission length cpus [field=..]`; what became of it is `start-end@machines`, with x if it was killed
and > if it was moved.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from builders import played
from varcap_talk import in_words, job_of, rules_of, scheduler

from batwatt.errors import InputError
from batwatt.inputs.spec import parse_series
from batwatt.model.platform import MachineSpec, machines_platform
from batwatt.model.timeline import Timeline
from batwatt.schedulers.varcap import Varcap
from batwatt.scheduling.fleet import CapacityForecast

RULES = rules_of("""
jobs share the first machine with room
  # b fits beside a, c only on the next, d beside both; e on the third
  machines=3, cores=4
  a 0 100 2, b 1 100 1, c 2 100 2, d 3 100 1, e 4 100 3
  -> a 0-100@0, b 1-101@0, c 2-102@1, d 3-103@0, e 4-104@2
a dedicated job has its machine to itself
  machines=2, cores=4, nodes=dedicated
  a 0 100 1, b 1 100 1, c 2 100 1
  -> a 0-100@0, b 1-101@1, c 100-200@0
a job on several machines has them to itself
  # 5 cores of machines of 4: two machines, and b does not use what is left of them
  machines=4, cores=4
  a 0 100 5, b 1 100 1, c 2 100 9, d 3 10 1
  -> a 0-100@0,1, b 1-101@2, c 100-200@0,1,3, d 3-13@2
memory is a limit like cores
  # 6 + 6 > 10 on machine 0, 6 + 4 = 10 is not; the wide one has 20 / 2 = 10 a machine
  machines=3, cores=4, machine_memory=10
  a 0 100 1 memory=6, b 1 50 1 memory=6, c 2 100 1 memory=4, d 3 100 5 memory=20
  -> a 0-100@0, b 1-51@1, c 2-102@0, d 51-151@1,2
what exactly fills the memory fits, in {GB|MB|KB}
  # 0.4 + 0.3 = 0.7 = 2.1 / 3; d waits for a; e needs a little more than 0.7 - 0.1, and waits for c
  machines=4, cores=4, machine_memory={0.7|716.8|734003.2}
  a 0 100 1 memory={0.4|409.6|419430.4}, b 1 100 1 memory={0.3|307.2|314572.8}, c 2 100 9 memory={2.1|2150.4|2202009.6}
  d 3 50 1 memory={0.1|102.4|104857.6}, e 101 10 1 memory={0.600001|614.401|629145.7}
  f 102 10 1 memory={0.6|614.4|629145.6}
  -> a 0-100@0, b 1-101@0, c 2-102@1,2,3, d 100-150@0, e 102-112@1, f 102-112@0
what needs more memory than its machines have is rejected
  machines=2, cores=4, machine_memory=10
  a 0 10 1 memory=10.5, b 0 10 8 memory=20.5, c 0 10 8 memory=20
  -> a rejected, b rejected, c 0-10@0,1
what needs more machines than ever come is rejected
  # a waits for the third machine; b comes when there will be two for ever; c is told so after its first submission;
  # d cannot start before c ends at 130, is killed at 200, and can never run again
  machines=3, capacity=2 100:3 200:2, termination=order
  a 10 20 3, b 210 10 3, c 120 10 3, d 120.5 85 3, e 220 10 2
  -> a 100-120@0,1,2, b rejected, c 120-130@0,1,2, d 130-200@0,1,2x rejected, e 220-230@0,1
machines without jobs leave first and the safest come back first
  # at 10 s machines 3, then 0 are idle and leave: 1 and 2 stay. At 50 s machine 0 comes back, at 70 s machine 3
  machines=4, capacity=4 10:2 50:3 70:4, termination=order
  a 0 5 1, b 0 100 1, c 0 100 1, d 20 10 1, e 55 100 1, f 56 100 1
  -> a 0-5@0, b 0-100@1, c 0-100@2, d 50-60@0, e 60-160@0, f 70-170@3
the victim on a fall by {lww|lfd|order}
  # at 100 s: a on machine 0, b and c on 1, d on 2; work 4x100 = 400, 2x70 + 2x40 = 220, 4x60 = 240 core s: machine 1,
  # whose jobs find room when d ends; done 100/1000 = 0.1, 70/200 + 40/400 = 0.45, 60/300 = 0.2: machine 0, the next
  # free one is d's; by order machine 2, the next free one is that of b and c
  machines=3, cores=4, capacity=3 100:2, termination={lww|lfd|order}
  a 0 1000 4, b 30 200 2, d 40 300 4, c 60 400 2
  -> a {0-1000@0|0-100@0x 340-1340@2|0-1000@0}, b {30-100@1x 340-540@2|30-230@1|30-230@1}
  -> c {60-100@1x 340-740@2|60-460@1|60-460@1}, d {40-340@2|40-340@2|40-100@2x 460-760@1}
lfd goes by the estimate
  # a: 100/400 = 0.25 of its estimate, so d with 0.2 is the victim
  machines=3, cores=4, capacity=3 100:2, termination=lfd
  a 0 1000 4 estimate_s=400, b 30 200 2, d 40 300 4, c 60 400 2
  -> a 0-1000@0, b 30-230@1, c 60-460@1, d 40-100@2x 460-760@1
of equal victims by {lww|lfd} it is the least safe
  machines=3, capacity=3 50:1, termination={lww|lfd}
  a 0 100 1, b 0 100 1, c 0 100 1
  -> a 0-100@0, b 0-50@1x 100-200@0, c 0-50@2x 200-300@0
a wide job frees all its machines, {which are free then|which leave first}
  # lfd: w 0.1, a 90/200, b 80/100. w is killed for machine 1; of its machines 0 stays free
  machines=4, cores=2, capacity=4 100:{3|2}, termination=lfd
  w 0 1000 4, a 10 200 2, b 20 100 2, c 110 5 2
  -> w 0-100@0,1x {120-1120@0,3|210-1210@2,3}, a 10-210@2, b 20-120@3, c {110-115@0|120-125@3}
a killed job starts again at once where there is room
  # b was on machine 1 because x was in its way
  machines=2, cores=2, capacity=2 50:1, termination=order
  x 0 10 1, a 0 1000 1, b 1 1000 1
  -> x 0-10@0, a 0-1000@0, b 1-50@1x 50-1050@0
a killed job waits by its submission
  machines=2, capacity=2 50:1, termination=order
  a 0 100 1, b 1 100 1, c 10 100 1
  -> a 0-100@0, b 1-50@1x 100-200@0, c 200-300@0
first-fit, the default of fcfs: w is passed over until all three machines are free
  machines=3
  a 0 100 1, w 1 50 3, b 2 98 1, c 3 98 1
  -> a 0-100@0, b 2-100@1, c 3-101@2, w 101-151@0,1,2
no backfilling
  machines=3, backfilling=none
  -> a 0-100@0, w 100-150@0,1,2, b 150-248@0, c 150-248@1
easy{|, the default of wfp}: the shadow time is 100 s, b ends just then, c would at 101 s
  machines=3, {backfilling=easy|order=wfp}
  -> a 0-100@0, b 2-100@1, w 100-150@0,1,2, c 150-248@0
easy reserves all that are needed
  # a and b end at 100 s; then 0, 1 and 3 are free, and w gets them: none is left
  machines=4, backfilling=easy
  a 0 100 1, b 0 100 1, x 0 300 1, w 1 50 3, d 2 1000 1, e 3 1000 1
  -> a 0-100@0, b 0-100@1, x 0-300@2, w 100-150@0,1,3, d 150-1150@0, e 150-1150@1
the shadow time goes by estimates
  # a is thought to end at 60 s: b, until 62 s by its own estimate, is not let in; c, until 53 s, is, and is late.
  # From 60 s on a may end at any moment: when c has, at 73 s, nothing may start before it, not even d
  machines=2, backfilling=easy
  a 0 100 1 estimate_s=60, w 1 50 2, b 2 50 1 estimate_s=60, c 3 70 1 estimate_s=50, d 80 5 1
  -> a 0-100@0, w 100-150@0,1, b 150-200@0, c 3-73@1, d 150-155@1
a job for machines that are out of service holds nobody
  # three machines come at 500 s; until then w gets no reservation, but v, the next, does
  machines=3, capacity=2 500:3, backfilling=easy
  a 0 100 1, w 1 50 3, v 2 50 2, b 3 300 1, c 4 90 1
  -> a 0-100@0, w 500-550@0,1,2, v 100-150@0,1, b 150-450@0, c 4-94@1
wfp goes by estimates
  # at 100 s: b (90/90)^3 = 1; c, thought to last 80 s, (40/80)^3 = 0.125
  machines=1, order=wfp
  a 0 100 1, b 10 90 1, c 60 20 1 estimate_s=80
  -> a 0-100@0, b 100-190@0, c 190-210@0
wfp goes by machines
  # at 100 s: b (90/90)^3 = 1; c, on two machines, (85/100)^3 x 2 = 1.23
  machines=2, order=wfp
  a 0 100 2, b 10 90 1, c 15 100 2
  -> a 0-100@0,1, b 200-290@0, c 100-200@0,1
wfp counts from the first submission
  # b is killed at 50 s; at 100 s b (90/90)^3 = 1, c (75/80)^3 = 0.82
  machines=2, capacity=2 50:1, order=wfp, termination=order
  a 0 100 1, b 10 90 1, c 25 80 1
  -> a 0-100@0, b 10-50@1x 100-190@0, c 190-270@0
longest first
  machines=1, mapping=jobsize-order
  a 0 10 1, b 1 20 1, c 2 30 1, d 3 30 1
  -> a 0-10@0, b 70-90@0, c 10-40@0, d 40-70@0
longest by the walltime
  # b is thought to last 50 s
  machines=1, mapping=jobsize-order, run_times={"name": "walltime", "otherwise_s": 40}
  a 0 10 1, b 1 20 1 estimate_s=50, c 2 30 1
  -> a 0-10@0, b 10-30@0, c 30-60@0
foresight {refuses a start that would fail|lets in what is over at the change}
  # one of two machines stays at 100 s, and a needs one: b may start if it is over just then
  machines=2, capacity=2 100:1, knowledge=exact, foresight_h=1
  a 0 150 1, b 0 {100.5|100} 1
  -> a 0-150@0, b {150-250.5@0|0-100@1}
all changes of the window count
  # 2 machines from 100 s, 1 from 200 s. b: at 200 s a and b, 1 + 1 > 1; c: at 100 s 1 + 1 = 2; d: at 100 s 2 + 1 > 2;
  # e: over at 100 s
  machines=3, capacity=3 100:2 200:1, knowledge=exact, foresight_h=1
  a 0 250 1, b 0 250 1, c 0 150 1, d 0 150 1, e 0 100 1
  -> a 0-250@0, b 250-500@0, c 0-150@1, d 500-650@0, e 0-100@2
{the end of the window holds a start|nobody is held by what lies beyond the window}
  machines=2, capacity=2 {1800|1800.5}:1, knowledge=exact, foresight_h=0.5, termination=order
  a 0 2000 1, b 0 2000 1
  -> a 0-2000@0, b {2000-4000@0|0-1800.5@1x 2000-4000@0}
who has outlived his estimate is in nobodys way
  # at 50 s a should have ended at 40 s: it is thought to end at any moment, and b starts; it was not so until 40 s.
  # b, until 130 s by its estimate: at 100 s nobody else is there, 0 + 1 <= 1. c: b is, 1 + 1 > 1
  machines=3, capacity=3 100:1, knowledge=exact, run_times={"name": "walltime"}, foresight_h=1, termination=order
  a 0 300 1 estimate_s=40, b 30 200 1 estimate_s=100, c 50 200 1 estimate_s=200
  -> a 0-300@0, b 30-100@1x 300-500@0, c 500-700@0
without run times starts are held down to the least capacity
  # one machine until 200 s, of two cores: b starts beside a; c, d and e wait for it; from 200 s on there are three
  machines=3, cores=2, capacity=3 100:1 200:3, knowledge=none, foresight_h=1
  a 0 10 1, b 0 150 1, c 0 200 1, d 0 300 1, e 0 10 2
  -> a 0-10@0, b 0-150@0, c 10-210@0, d 150-450@0, e 200-210@1
a wide job counts all its machines, if it ends {by|after} the fall
  machines=4, capacity=4 100:3 200:4, knowledge=exact, foresight_h=1
  w 0 {100|101} 4
  -> w {0-100|200-301}@0,1,2,3
beside a job that ends before the change it is like on a free machine
  # a, and so machine 0, is thought to be free at 50 s; b, c stay on beyond 100 s. b beside a: 0 + 1 <= 1; c on 1:
  # 1 + 1 > 1; at 50 s c beside b, which is on machine 0 beyond 100 s; d when b ends
  machines=3, cores=2, capacity=3 100:1, knowledge=exact, foresight_h=1
  a 0 50 1, b 1 300 1, c 2 300 1, d 3 300 1
  -> a 0-50@0, b 1-301@0, c 50-350@0, d 301-601@0
longshort keeps the groups apart
  # two stable machines: l3 waits though 2 and 3 are free; short ones come from the other end
  machines=4, mapping=longshort, long_s=100, low=2, high=4
  l1 0 200 1, l2 1 200 1, l3 2 200 1, s1 3 50 1, s2 4 50 1, s3 5 50 1
  -> l1 0-200@0, l2 1-201@1, l3 200-400@0, s1 3-53@3, s2 4-54@2, s3 53-103@3
the stable group stays
  # at 10 s only the machines of l1 and of s3 stay, though s3 has done less than the others
  machines=4, capacity=4 10:2 30:4, mapping=longshort, long_s=100, termination=lww
  l1 5 200 1, s1 1 50 1, s2 2 50 1, s3 3 50 1
  -> l1 5-205@0, s1 1-10@3x 30-80@3, s2 2-10@2x 30-80@2, s3 3-53@1
longshort reserves for each group
  # easy: w is short, waits for 2 and 3, and keeps s2 from 2; l3 waits for the stable group, and keeps nobody
  machines=4, mapping=longshort, long_s=100, stable=2, backfilling=easy
  l1 0 200 1, l2 0 200 1, s1 0 50 1, w 1 20 2, s2 2 60 1, s3 3 40 1, l3 4 200 1
  -> s1 0-50@3, w 50-70@2,3, s2 70-130@3, s3 3-43@2, l1 0-200@0, l2 0-200@1, l3 200-400@0
twomode changes its mode
  # 1 to 3 machines: 2 is the threshold. x, on machines 2 and 1, is killed at 50 s; b, since 10 s on 0, ends at 80 s.
  # 80 s, R = 1: c (200 s) before x, which would not fit; 150 s, R = 2: e (300 s) before d, on 1; 250 s, R = 3: d (20 s)
  # before x, which would not fit either, on 2; 280 s: c has ended, and x gets the least safe, 2 and 0
  machines=3, capacity=3 50:1 150:2 250:3, mapping=twomode, termination=order
  x 0 100 2, b 10 70 1, c 20 200 1, d 110 20 1, e 109 300 1
  -> x 0-50@1,2x 280-380@0,2, b 10-80@0, c 80-280@0, e 150-450@1, d 250-270@2
migration moves what has done most and kills what has done least
  # at 100 s machine 0 has a and c (4 cores), 1 b and e (3), 2 d (3): 2 leaves, the least safe of those with 3.
  # d needs 3 cores, 0 has none and 1 has one. Work: a 300, b 2 x 90 = 180, c 80, d 3 x 70 = 210, e 60:
  # e, c, b are killed before it fits on 1. Then c finds room on 0, e on 1, b when a ends.
  machines=3, cores=4, capacity=3 100:2, mapping=migration
  a 0 1000 3, b 10 1000 2, c 20 1000 1, d 30 1000 3, e 40 1000 1
  -> a 0-1000@0, b 10-100@1x 1000-2000@0, c 20-100@0x 100-1100@0
  -> d 30-100@2> 100-1030@1, e 40-100@1x 100-1100@1
the one that has run longer is moved
  # at 50 s a, submitted later, has been on machine 0 for 45 s, b on machine 1 for 49 s
  machines=2, capacity=2 50:1, mapping=migration
  x 0 5 1, b 1 100 1, a 2 100 1
  -> x 0-5@0, b 1-50@1> 50-101@0, a 5-50@0x 101-201@0
the most work done is moved first
  # at 50 s: machine 0 a (3 of 5 cores), 1 b (4), 2 f and g (1 + 2): 2 leaves, less safe than 0. g has done
  # 2 x 35 = 70, f 45: g gets the room of 2 on machine 0, f that of 1 on machine 1
  machines=3, cores=5, capacity=3 50:2, mapping=migration
  a 0 1000 3, x 0 20 2, b 1 1000 4, y 1 20 1, f 5 1000 1, g 15 1000 2
  -> a 0-1000@0, x 0-20@0, b 1-1001@1, y 1-21@1, f 5-50@2> 50-1005@1, g 15-50@2> 50-1015@0
a moved job that is killed starts from zero
  # b moves to 0 at 50 s with 45 s done by then, when c (3 s) is killed; at 80 s all is killed by the fall to 0
  machines=2, capacity=2 50:1 80:0 90:1, mapping=migration
  x 0 47 1, b 5 100 1, c 6 100 1
  -> x 0-47@0, b 5-50@1> 50-80@0x 90-190@0, c 47-50@0x 190-290@0
a job waits for those it depends on
  # in nobody's way meanwhile, even without backfilling
  machines=3, backfilling=none
  a 0 100 1, b 1 200 1, c 2 10 1 depends_on=a;b, d 3 10 1 depends_on=a, e 4 10 1
  -> a 0-100@0, b 1-201@1, c 201-211@0, d 100-110@0, e 4-14@2
who depends on a rejected job is rejected
  machines=2
  a 0 10 3, b 1 10 1 depends_on=a, c 2 10 1 depends_on=b, d 3 10 1
  -> a rejected, b rejected, c rejected, d 3-13@0
a rejected job does not come back when another one completes
  machines=2
  b 0 10 1 depends_on=a;c, c 1 100 1, a 2 10 3
  -> a rejected, b rejected, c 1-101@0
a job that is not in the workload counts as completed
  machines=1
  a 0 10 1 depends_on=zz
  -> a 0-10@0
who waits for others can become too wide
  machines=3, capacity=3 50:2, termination=order
  a 0 100 1, b 1 10 3 depends_on=a
  -> a 0-100@0, b rejected
least-loss is lww if nothing is saved
  # a, b and c, d have done 4x100, 2x70 + 2x40 and 4x60 core s
  machines=3, cores=4, capacity=3 100:2, termination=least-loss
  a 0 1000 4, b 30 200 2, d 40 300 4, c 60 400 2
  -> a 0-1000@0, b 30-100@1x 340-540@2, c 60-100@1x 340-740@2, d 40-340@2
the bias of a fall
  # b and its like last until 150 s. 2 machines from 100 s on are told as 2 x 0.5 = 1
  machines=4, capacity=4 100:2, knowledge=exact, foresight_h=1, termination=order, foresight_bias=-0.5
  a 0 150 1, b 0 150 1
  -> a 0-150@0, b 100-250@1
a missed fall is told as no change
  machines=2, capacity=2 100:1, knowledge=exact, foresight_h=1, termination=order, foresight_missed=1
  a 0 150 1, b 0 150 1
  -> a 0-150@0, b 0-100@1x 150-300@0
a rise is told as it is
  # at 0 s there is one machine until 100 s, then two
  machines=2, capacity=1 100:2, knowledge=exact, foresight_h=1, termination=order, foresight_missed=1
  w 0 150 2, a 0 150 1
  -> w 150-300@0,1, a 0-150@0
a false alarm
  # 3 machines from 100 s on are told as 1, the least there ever is; from then on nothing is in b's way
  machines=4, capacity=4 100:3 400:1 500:4, knowledge=exact, foresight_h=1, termination=order, foresight_false_alarms=1
  a 0 150 1, b 0 150 1
  -> a 0-150@0, b 100-250@1
""")


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    assert RULES[name].played() == RULES[name].expected


SAVED = {"machines": 3, "cores": 4, "capacity": "3 100:2", "termination": "least-loss"}
SAVED["victim"] = {"name": "checkpoint", "checkpoint_s": 20, "recovery_s": 10}


@pytest.mark.parametrize(
    ("d", "options", "expected"),
    [
        # C + R = 30 s on 4 cores on each machine; of equals it is the least safe. d keeps 60 - 20 of its 300 s,
        # recovers 10 and goes on where b and c were, when c ends
        ("d 40 300 4", {}, "40-100@2x 460-730@1"),
        # d loses 2 x 30 core s, the machine of b and c 4 x 30; b ends first
        ("d 40 300 2", {"nodes": "dedicated"}, "40-100@2x 230-500@1"),
        # 15 s are too short for a checkpoint: d loses them, 4 x 15 core s, and begins again
        ("d 85 300 4", {}, "85-100@2x 460-760@1"),
    ],
    ids=["checkpoint and recovery are what is lost", "the fewest cores", "one that has hardly run"],
)
def test_what_is_lost_with_checkpoints(d, options, expected):
    assert scheduler("a 0 1000 4", "b 30 200 2", d, "c 60 400 2", **SAVED, **options)["d"] == expected


@pytest.mark.parametrize(("of_a", "of_b"), [(100.1, 100.2), (100, 100), (232.304, 147.317)])
def test_of_equal_work_the_later_submission_is_killed(of_a, of_b):
    # both began at 10 s: 40.3 s of work each at 50.3 s, whatever their lengths; b's machine leaves
    jobs = "w 0 10 2", f"a 1 {of_a} 1", f"b 2 {of_b} 1"
    runs = scheduler(*jobs, machines=2, capacity="2 50.3:1", mapping="migration")
    assert (runs["a"].count("x"), runs["b"].count("x")) == (0, 1)


@pytest.mark.parametrize(
    ("low", "high", "longest"),
    [(1, 4, False), (3, 4, False), (4, 4, True), (2, 6, True), (2, 5, False), (3, 6, True)],
)
def test_the_mode_at_the_threshold(low, high, longest):
    # R = 4 against 2.5, 3.5, 4, 4, 3.5, 4.5; machines beyond 4 are not in service until all is over
    jobs = [f"{name} 0 {10 * number} 1" for number, name in enumerate("abcde", 1)]
    expected = {"a": "0-10@3", "b": "0-20@2", "c": "0-30@1", "d": "0-40@0", "e": "10-60@3"}
    if longest:
        expected = {"e": "0-50@0", "d": "0-40@1", "c": "0-30@2", "b": "0-20@3", "a": "20-30@3"}
    options = {"machines": max(4, high), "capacity": f"4 100:{max(4, high)}", "mapping": "twomode"}
    assert scheduler(*jobs, **options, low=low, high=high) == expected


# the range of the capacity ------------------------------------------------------------------------------------------


def bounds_of(text: str, machines: int) -> tuple[float, float] | None:
    """The range that the text of a capacity states, of a run from 100 s on."""
    return parse_series("machines", text).timeline(None, 36_000.0, machines).since(100.0).bounds


def test_the_range_that_a_text_states(tmp_path):
    # 0.7 - 0.3 and 0.7 + 0.3 of 20; 0.6 +- 0.2 of 9 is 3.6 and 7.2, rounded down; values never reach the ends
    assert bounds_of("walk:range=0.6,step=0.01,seed=1", 20) == (8, 20)
    assert bounds_of("uniform:mean=0.6,range=0.4,seed=1", 9) == (3, 7)
    assert bounds_of("walk:range=0.6,full=10,seed=1", 20) == (4, 10)
    assert bounds_of("constant:7", 20) == bounds_of("constant:mean=0.35", 20) == (7, 7)
    # a sum: 8 + 2 and 14 + 2 of 20
    assert bounds_of("walk:mean=0.55,range=0.3,seed=1 + constant:2", 20) == (10, 16)
    (tmp_path / "some.csv").write_text("time_s,machines\n0,4\n200,2\n")
    assert bounds_of(str(tmp_path / "some.csv"), 20) is None
    assert bounds_of(f"walk:range=0.3,mean=0.4,seed=1 + trace:{tmp_path / 'some.csv'}", 20) is None


@pytest.mark.parametrize(
    ("options", "stable", "remarked"),
    [
        # 2 of its values, 1 of its text
        ({}, 1, False),
        ({"bounds": "values"}, 2, False),
        ({"low": 3}, 3, False),
        ({"low": 3, "stable": 0}, 0, False),
        ({"text": None}, 2, True),
        ({"text": None, "bounds": "values"}, 2, False),
        ({"text": None, "low": 1}, 1, False),
        ({"text": None, "stable": 1}, 1, False),
    ],
)
def test_the_stable_group_is_the_known_least(options, stable, remarked, caplog):
    text = options.get("text", (1.0, 4.0))
    options = {"capacity": Timeline((0.0, 50.0), (4.0, 2.0), bounds=text)} | options
    options.pop("text", None)
    rows = [job_of(f"{name} 0 100 1") for name in "abc"]
    _, plays = play_on(options.pop("capacity"), rows, mapping="longshort", long_s=10, **options)
    assert plays.mapping.stable == stable
    assert ("states no range: longshort takes" in caplog.text) is remarked


def test_twomode_goes_by_the_known_range(caplog):
    # R = 3 against the middle of 1 and 4, and of 3 and 4: shortest or longest first
    for bounds, longest in (((1.0, 4.0), False), ((3.0, 4.0), True)):
        capacity = Timeline((0.0, 500.0), (3.0, 4.0), bounds=bounds)
        rows = [job_of(f"{name} 0 {length} 3") for name, length in (("a", 10), ("b", 20))]
        record, _ = play_on(capacity, rows, mapping="twomode")
        assert in_words(record, 1)["b"].startswith("0-20" if longest else "10-30")
    assert "states no range" not in caplog.text


def play_on(capacity: Timeline, rows, **options):
    """The record of a run on four machines of one core, and the scheduler."""
    scheduler = Varcap({"capacity": capacity, "switch": False} | options)
    return played(scheduler, machines_platform(MachineSpec(4, 1)), *rows, energy=False), scheduler


# what is drawn ------------------------------------------------------------------------------------------------------


def victims(jobs, machines, fall_to, seeds, **options) -> Counter[str]:
    """How often each job was killed, over so many seeds."""
    counts: Counter[str] = Counter()
    for seed in range(seeds):
        options = {"termination": "random"} | options | {"capacity": f"{machines} 50:{fall_to}", "seed": seed}
        counts.update(name for name, runs in scheduler(*jobs, machines=machines, **options).items() if "x" in runs)
    return counts


def test_random_victims_are_machines_equally_likely():
    # w has 3 of 4 machines: 60 of 80 expected, +-4 standard deviations of 3.9
    counts = victims(("w 0 100 3", "a 1 100 1"), 4, 3, 80)
    assert sum(counts.values()) == 80 and 45 <= counts["w"] <= 75
    # each of three machines: 20 of 60 expected, +-4 x 3.7
    counts = victims(("a 0 100 1", "b 0 100 1", "c 0 100 1"), 3, 2, 60)
    assert all(6 <= counts[name] <= 34 for name in "abc") and sum(counts.values()) == 60


ANY = {"name": "random", "idle_first": False}


def test_random_spares_jobs_while_machines_are_idle():
    # section 6.1: one machine is in use, two stay
    assert victims(("a 0 100 1",), 3, 2, 30) == {}
    # two of four are in use, one stays: one job of two, 20 of 40 expected, +-4 x 3.2; the other goes on
    counts = victims(("a 0 100 1", "b 0 100 1"), 4, 1, 40)
    assert sum(counts.values()) == 40 and 8 <= counts["a"] <= 32
    # two of four leave: the machine of a is not enough, one of w frees three; w is drawn first in 3 of 4 cases:
    # a in 15 of 60, +-4 x 3.4
    counts = victims(("w 0 100 3", "a 1 100 1"), 4, 2, 60)
    assert counts["w"] == 60 and 2 <= counts["a"] <= 28


def test_any_machine_may_go_by_section_7_2():
    # one of three has a job: 20 of 60 expected; with foresight those without go first
    counts = victims(("a 0 100 1",), 3, 2, 60, termination=ANY)
    assert 6 <= counts["a"] <= 34
    assert victims(("a 0 100 1",), 3, 2, 30, termination=ANY, foresight_h=1) == {}
    # the default of base, and only of base
    assert victims(("a 0 100 1",), 3, 2, 60, termination=None) == counts
    assert victims(("a 0 100 1",), 3, 2, 30, termination=None, mapping="twomode") == {}


@pytest.mark.parametrize("foresight_h", [1, 6])
def test_with_foresight_both_are_the_same(foresight_h):
    jobs = [f"{name} {at} {30 * at + 20} {1 + at % 2}" for at, name in enumerate("abcdefgh")]
    options = {"machines": 6, "capacity": "6 50:3 90:5 130:2 200:6", "foresight_h": foresight_h, "knowledge": "class"}
    for seed in range(10):
        spared = scheduler(*jobs, **options, seed=seed, termination="random", long_s=40, longest_s=60)
        assert any("x" in runs for runs in spared.values())
        assert scheduler(*jobs, **options, seed=seed, termination=ANY, long_s=40, longest_s=60) == spared


@pytest.mark.parametrize(("change_s", "deviation"), [(3600.0, 2.0), (900.0, 1.0)])
def test_the_noise_of_what_is_foreseen(change_s, deviation):
    """Of 10 machines 5 stay: an hour ahead 0.2 x 10 machines, a quarter of an hour half of that.

    Whole machines are half a machine less in the mean, and add 1/12 to the variance.
    """

    def foreseen(seed: int) -> float:
        capacity = Timeline((0.0, change_s), (10.0, 5.0))
        return CapacityForecast(capacity, 10, 3600.0, 0.0, 0.2, 0.0, 0.0, seed).at(0.0)[1].item()

    counts = [foreseen(seed) for seed in range(400)]
    # four standard errors of a mean and of a standard deviation, with some for the bounds 0 and 10
    assert abs(np.mean(counts) - 4.5) <= 4 * deviation / 400**0.5
    assert abs(np.std(counts) - (deviation**2 + 1 / 12) ** 0.5) <= 4 * deviation / 800**0.5
    assert counts == [foreseen(seed) for seed in range(400)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"mapping": "jobsize-order", "knowledge": "class"}, "option 'knowledge'.*class.*jobsize-order"),
        ({"mapping": "longshort", "knowledge": "none"}, "option 'knowledge'.*none.*longshort"),
        ({"mapping": "jobsize-order", "backfilling": "easy"}, "option 'backfilling'.*easy.*jobsize-order"),
        ({"mapping": "twomode", "order": "wfp"}, "option 'order'.*wfp.*twomode"),
        ({"mapping": "twomode", "low": 3, "high": 2}, r"option 'low': must be <= 'high' \(2\), got 3"),
        ({"termination": {"name": "random", "idle_first": 1}}, "idle_first must be true or false, got 1"),
        ({"mapping": "longshort", "longest_s": 10}, r"option 'longest_s': must be >= 'long_s' \(3600\), got 10"),
    ],
)
def test_options_that_do_not_go_together(options, problem):
    with pytest.raises(InputError, match=problem):
        scheduler("a 0 10 1", machines=1, **options)
