"""The envelope of a session in a file, the meter of its power, and rules of its options."""

import math

import pytest
from slurm_session import cap_of

from batwatt.errors import InputError
from batwatt.slurm.account import Feed, PowerMeter
from batwatt.slurm.actions import KillRule
from batwatt.slurm.snapshot import _exit_code


def test_a_new_version_counts_after_two_equal_reads(tmp_path, caplog):
    path = tmp_path / "w.csv"
    feed = Feed(cap_of(path, (0, 500), (100, 700)), 1.7e9)
    feed.check()
    assert [feed.value(time_s) for time_s in (0.0, 99.0, 100.0)] == [500.0, 500.0, 700.0]
    assert feed.next_s(0.0) == 100.0
    cap_of(path, (0, 500), (100, 40))
    assert [feed.value(time_s) for time_s in (101.0, 102.0)] == [700.0, 40.0]
    path.write_text("nonsense\n")
    assert [feed.value(time_s) for time_s in (103.0, 104.0)] == [40.0, 40.0]
    assert "nonsense" not in caplog.text and str(path) in caplog.text


def test_half_of_a_file_is_not_followed(tmp_path, caplog):
    path = tmp_path / "w.csv"
    feed = Feed(cap_of(path, (0, 1600)), 1.7e9)
    feed.check()
    cap_of(path, (0, 16), end="")
    assert [feed.value(time_s) for time_s in (1.0, 2.0, 3.0)] == [1600.0] * 3
    assert "does not end with a newline, so it may be half written" in caplog.text
    path.unlink()
    assert feed.value(4.0) == 1600.0
    with pytest.raises(InputError, match="half written"):
        Feed(cap_of(path, (0, 16), end=""), 1.7e9).check()


def test_a_fall_needs_to_be_allowed_and_a_floor_holds(tmp_path, caplog):
    path = tmp_path / "w.csv"
    cap_of(path, (0, 1600), (100, 20))
    feed = Feed(str(path), 1.7e9, floor_w=72.0, fall=0.5)
    feed.check()
    # a step of the same version is planned
    assert feed.value(100.0) == 72.0 and "20 W is below the 72 W of nodes that sleep" in caplog.text
    cap_of(path, (0, 1600))
    assert [feed.value(101.0), feed.value(102.0)] == [72.0, 1600.0]
    cap_of(path, (0, 790))
    assert [feed.value(103.0), feed.value(104.0)] == [1600.0, 1600.0]
    assert "falls from 1600 to 790 W at once, which is not followed; to allow it give --allow-fall 51" in caplog.text
    cap_of(path, (0, 810))
    assert [feed.value(105.0), feed.value(106.0)] == [1600.0, 810.0]


def test_an_envelope_by_date_is_on_the_clock_of_the_session(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("time,power_w\n2026-01-01T00:00Z,100\n2026-01-01T01:00Z,200\n2026-01-01T02:00Z,300\n")
    feed = Feed(str(path), 1767225600.0 + 1800.0)
    feed.check()
    assert [feed.value(time_s) for time_s in (0.0, 1799.0, 1800.0, 5400.0)] == [100.0, 100.0, 200.0, 300.0]


def test_an_envelope_by_date_that_is_over_holds_its_last_value(tmp_path, caplog):
    """A session may begin while the source of its envelope is late."""
    path = tmp_path / "w.csv"
    path.write_text("time,power_w\n2026-01-01T00:00Z,100\n2026-01-01T01:00Z,200\n")
    feed = Feed(str(path), 1767225600.0 + 86_400.0)
    feed.check()
    assert [feed.value(0.0), feed.value(60.0)] == [200.0, 200.0] and feed.next_s(0.0) == math.inf
    assert caplog.text.count("its rows end 79200 s before now: 200 W hold") == 1 == caplog.text.count("before now")


def test_a_last_value_expires_into_a_fallback(tmp_path, caplog):
    path = tmp_path / "w.csv"
    path.write_text("time_s,power_w\n0,500\n100,700\n")
    feed = Feed(str(path), 1.7e9, expiry_s=50.0, fallback=40.0)
    feed.check()
    # the value of 100 s is that of 100 s, as long as the one before
    assert [feed.value(time_s) for time_s in (199.0, 249.0, 251.0)] == [700.0, 700.0, 40.0]
    assert "its rows end 51 s before now: 40 W hold" in caplog.text
    path.write_text("time_s,power_w\n0,500\n200,600\n")
    assert [feed.value(251.0), feed.value(251.0)] == [40.0, 600.0]


def test_a_file_that_cannot_be_read_ends_a_session_before_it_begins(tmp_path):
    with pytest.raises(InputError, match="nosuch"):
        Feed(str(tmp_path / "nosuch.csv"), 1.7e9).check()


def test_measured_watts(caplog):
    assert PowerMeter("echo 431.5 W").watts() == 431.5
    assert PowerMeter().watts() is None
    assert PowerMeter("false").watts() is None and "measured watts" in caplog.text
    assert PowerMeter("echo -3").watts() is None


def test_a_meter_whose_start_times_out_is_started_again():
    def late():
        raise TimeoutError

    meter = PowerMeter("echo 5")
    meter._read = late
    assert meter.watts() is None
    del meter._read
    assert meter.watts() == 5.0


@pytest.mark.parametrize(
    ("text", "code"), [("", 0), ("0:0", 0), ("7:0", 7), ("0:9", 137), ("0", 0), ("1792", 7), ("9", 137), ("137", 137)]
)
def test_an_exit_code_of_old_and_new_slurms(text, code):
    assert _exit_code(text) == code


def test_kill_rules():
    assert [KillRule.of(text, 5.0).signal for text in ("requeue", "cancel", "signal=USR1", "signal=SIGTERM")] == [
        "", "", "USR1", "TERM",
    ]  # fmt: skip
    with pytest.raises(InputError, match="is no rule"):
        KillRule.of("shoot", 5.0)
