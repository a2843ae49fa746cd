"""Jobs of several systems by user, size and length: worked out by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from batwatt.results.groups import groups_of, known_groupings, union_of

NAN = math.nan


def jobs_of(cases):
    """Rows of `case`, and of jobs a to d: hosts, length in s, user; and each case's waits in s, None: not finished."""
    facts = {"a": (1, 100.0, "x"), "b": (2, 900.0, "x"), "c": (4, 901.0, "y"), "d": (5, 90000.0, None)}
    rows, reference = [], next(iter(cases.values()))
    for case, waits in cases.items():
        for (name, (hosts, length_s, user)), wait, first in zip(facts.items(), waits, reference, strict=True):
            wait_s, first_s = (NAN if value is None else float(value) for value in (wait, first))
            rows.append({
                "case": case, "job_id": name, "hosts": hosts, "length_s": length_s, "user": user,
                "state": "killed" if wait is None else "finished", "wait_s": wait_s,
                "full_speed_slowdown": 1.0 + wait_s / length_s, "wait_more_s": wait_s - first_s,
                "full_speed_slowdown_more": (wait_s - first_s) / length_s,
            })  # fmt: skip
    return pd.DataFrame(rows)


TWO = jobs_of({"free": (0, 0, 100, None), "capped": (50, 1800, None, 10)})


def row(frame, case, group):
    found = frame[(frame["case"] == case) & (frame["group"] == group)]
    assert len(found) == 1
    return found.iloc[0]


def test_by_size():
    found = groups_of(TWO, "size")
    assert found["group"].tolist() == ["1 host", "2 to 4 hosts", "5 to 16 hosts"] * 2
    assert found["case"].tolist() == ["free"] * 3 + ["capped"] * 3
    # b waits 1800 s where it waited for none; c, of as many hosts, is killed
    middle = row(found, "capped", "2 to 4 hosts")
    assert (middle["jobs"], middle["finished_share"], middle["mean_wait_s"]) == (2, 0.5, 1800.0)
    assert (middle["mean_full_speed_slowdown"], middle["paired_jobs"]) == (3.0, 1)
    assert (middle["wait_more_s"], middle["full_speed_slowdown_more"]) == (1800.0, 2.0)
    # d finishes here only: nothing to compare with
    wide = row(found, "capped", "5 to 16 hosts")
    assert (wide["finished_share"], wide["mean_wait_s"], wide["paired_jobs"]) == (1.0, 10.0, 0)
    assert math.isnan(wide["wait_more_s"])
    assert (found.loc[found["case"] == "free", "wait_more_s"].dropna() == 0.0).all()


def test_by_length():
    found = groups_of(TWO, "length")
    # 900 s are a quarter of an hour, 901 s are more
    assert found["group"].unique().tolist() == ["up to 15 min", "15 min to 1 h", "over 24 h"]
    assert row(found, "capped", "up to 15 min")["wait_more_s"] == (50 + 1800) / 2
    assert row(found, "capped", "15 min to 1 h")["finished_share"] == 0.0


def test_a_length_nobody_says():
    unknown = TWO.assign(length_s=TWO["length_s"].where(TWO["job_id"] != "d"))
    assert groups_of(unknown, "length")["group"].tolist()[-1] == "unknown"


def test_by_user():
    found = groups_of(TWO, "user")
    # the one with the most jobs first, then by name
    assert found["group"].tolist() == ["x", "unknown", "y"] * 2
    assert row(found, "capped", "x")["full_speed_slowdown_more"] == (0.5 + 2.0) / 2


def test_the_many_are_others():
    names = [f"u{n:02d}" for n in range(12) for _ in range(1 + (n < 11))]
    frame = pd.DataFrame({"case": "one", "user": names, "state": "finished", "hosts": 1, "length_s": 60.0})
    frame = frame.assign(
        **dict.fromkeys(("wait_s", "full_speed_slowdown", "wait_more_s", "full_speed_slowdown_more"), 0.0)
    )
    found = groups_of(frame, "user").set_index("group")["jobs"]
    assert found.index.tolist() == [*(f"u{n:02d}" for n in range(10)), "2 others"]
    assert found.sum() == len(names) and found["2 others"] == 3


def test_a_user_called_others_is_one_of_them():
    users = ["2 others"] * 9 + [f"u{n}" for n in range(11)]
    frame = pd.DataFrame({"case": "one", "user": users, "state": "finished", "hosts": 1, "length_s": 60.0})
    frame = frame.assign(
        **dict.fromkeys(("wait_s", "full_speed_slowdown", "wait_more_s", "full_speed_slowdown_more"), 0.0)
    )
    assert groups_of(frame, "user")["jobs"].tolist() == [9, *[1] * 9, 2]


@pytest.mark.parametrize("by", ["size", "length", "user"])
def test_every_job_is_in_one_group(by):
    found = groups_of(TWO, by)
    assert (found.groupby("case")["jobs"].sum() == 4).all()
    finished = (found["jobs"] * found["finished_share"]).groupby(found["case"]).sum()
    assert finished.to_dict() == {"free": 3.0, "capped": 3.0}


def test_what_jobs_can_be_grouped_by():
    assert known_groupings(TWO.assign(queue=None, group="")) == ["size", "length", "user"]
    assert union_of(TWO, ["size", "user"])["by"].tolist() == ["size"] * 6 + ["user"] * 6
    with pytest.raises(ValueError, match="grouped by user, group, queue, qos, size, length, got 'colour'"):
        groups_of(TWO, "colour")
