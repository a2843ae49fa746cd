"""External events: their order and content, and the line named in every complaint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import scenarios
from hypothesis import given
from hypothesis import strategies as st

from batwatt.errors import InputError, UnknownNameError
from batwatt.inputs.workloads.batsim_files import read_events
from batwatt.model.series import Series
from batwatt.protocol.events import ExternalEvent, envelope_events


@pytest.fixture
def events(tmp_path: Path):
    def write(*lines: object, text: str | None = None) -> Path:
        path = tmp_path / "e.txt"
        written = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text(written if text is None else text, encoding="utf-8")
        return path

    return write


def machine(timestamp: object, kind: str = "machine_unavailable", resources: object = "0-1 3") -> dict[str, object]:
    return {"type": kind, "resources": resources, "timestamp": timestamp}


def test_golden_events():
    files = [folder / "events.txt" for folder in scenarios("golden", "own", "random")]
    for path in filter(Path.exists, files):
        expected = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert [event.time_s for event in read_events(path, True, 12)] == pytest.approx(
            sorted(event["timestamp"] for event in expected)
        )


def test_an_event():
    event = ExternalEvent(1.0, "generic", None, {"type": "x", "timestamp": 1})
    with pytest.raises(AttributeError):
        event.time_s = 2.0  # type: ignore[misc]


def test_order_and_content(events):
    path = events(
        {"type": "foo", "timestamp": 7, "x": 1.23456789, "n": {"a": [1]}},
        machine(7),
        "",
        machine(7, "machine_available", "5"),
        "   ",
        machine(5.5),
        {"type": "bar", "timestamp": 7},
        machine(7, resources="2"),
    )
    made = read_events(path, True)
    assert [(event.time_s, event.kind, event.resources) for event in made] == [
        (5.5, "machine_unavailable", 0b1011),
        (7.0, "machine_available", 0b100000),
        (7.0, "machine_unavailable", 0b1011),
        (7.0, "machine_unavailable", 0b100),
        (7.0, "generic", None),
        (7.0, "generic", None),
    ]
    assert [event.raw["type"] for event in made[-2:]] == ["foo", "bar"]
    assert json.dumps(made[-2].raw) == '{"type": "foo", "timestamp": 7, "x": 1.234568, "n": {"a": [1]}}'


def test_dates_keep_full_precision(events):
    (event,) = read_events(events(machine(1.23456789)), False)
    assert event.time_s == 1.23456789 and event.raw["timestamp"] == 1.234568


@pytest.mark.parametrize("text", ["", "\n\n \r\n"])
def test_no_events(events, text):
    assert read_events(events(text=text), False) == ()


def test_line_ends_of_other_systems(events):
    line = json.dumps(machine(1))
    assert len(read_events(events(text=f"{line}\r\n{line}\r\n"), False)) == 2


def test_unknown_types_need_forwarding(events):
    path = events(machine(1), {"type": "machine_unavailble", "timestamp": 7})
    with pytest.raises(
        UnknownNameError, match=r"line 2: .*did you mean 'machine_unavailable'.*--forward-unknown-events"
    ):
        read_events(path, False)
    assert len(read_events(path, True)) == 2


def test_hosts_of_the_platform(events):
    path = events(machine(1, resources="0-4"))
    assert read_events(path, False, 5)[0].resources == 0b11111
    with pytest.raises(InputError, match=r"line 1: host 4 is not on the platform, whose hosts are 0\.\.3"):
        read_events(path, False, 4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON"),
        ("3", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ("NaN", "NaN is not a number"),
        ({"type": "foo"}, "'timestamp' must be a number of seconds >= 0, got None"),
        ({"type": "foo", "timestamp": "7"}, "got '7'"),
        ({"type": "foo", "timestamp": True}, "got True"),
        ({"type": "foo", "timestamp": -1}, "got -1"),
        ({"type": "foo", "timestamp": 2**64}, "'timestamp' is 1.84467440737096e+19 s, more than 1e+11 s"),
        ({"type": "foo", "timestamp": 1795477939000}, "'timestamp' is 1795477939000 s, more than 1e+11 s"),
        ('{"type": "foo", "timestamp": 1e999}', "too large"),
        ('{"type": "foo", "timestamp": Infinity}', "is not a number"),
        ('{"type": "foo", "timestamp": 1' + "0" * 400 + "}", "too large"),
        ('{"type": "foo", "timestamp": 1, "x": [-1' + "0" * 400 + "]}", "too large"),
        ({"timestamp": 7}, "'type' must be a text"),
        ({"timestamp": 7, "type": ""}, "'type' must be a text"),
        ({"timestamp": 7, "type": 3}, "'type' must be a text"),
        (machine(1, resources=None), "'resources' must be a text"),
        (machine(1, resources=3), "'resources' must be a text"),
        (machine(1, resources=[0, 1]), "'resources' must be a text"),
        (machine(1, resources=""), "empty set of hosts"),
        (machine(1, resources="a"), "'a' is not a host id"),
        (machine(1, resources="3-1"), "'3-1' is not an interval"),
        (machine(1, resources="-1"), "is not a host id"),
        (machine(1, resources="0-99999999999"), "is not an interval"),
        ('{"type": "foo", "timestamp": 1, "x": ' + "[" * 200 + "]" * 200 + "}", "nested deeper"),
        ("[" * 100_000, "nested deeper"),
    ],
)
def test_malformed(events, line, message):
    with pytest.raises(InputError) as caught:
        read_events(events(machine(0), "", line), True)
    text = str(caught.value)
    assert "e.txt: line 3: " in text and message in text and "\n" not in text and len(text) < 400


def test_unreadable(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_events(tmp_path, True)
    path = tmp_path / "e.txt"
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        read_events(path, True)


@given(st.binary(max_size=100))
def test_random_bytes_never_raise_anything_else(tmp_path_factory, noise):
    path = tmp_path_factory.getbasetemp() / "noise.txt"
    path.write_bytes(noise)
    try:
        assert all(event.time_s >= 0.0 for event in read_events(path, True))
    except InputError as error:
        assert "\n" not in str(error)


def test_envelope_lines():
    series = Series((0.0, 300.0, 450.5), (2100.0, 0.0, 1e3))
    assert list(envelope_events(series)) == [
        '{"timestamp": 0, "type": "power_envelope", "power_w": 2100.0}',
        '{"timestamp": 300, "type": "power_envelope", "power_w": 0.0}',
        '{"timestamp": 450.5, "type": "power_envelope", "power_w": 1000.0}',
    ]


def test_envelope_is_read_back_as_events(events):
    series = Series((0.0, 300.0, 450.5), (2100.25, 0.0, 1e3))
    made = read_events(events(*envelope_events(series)), True)
    assert tuple(event.time_s for event in made) == series.times_s
    assert tuple(event.raw["power_w"] for event in made) == series.values
    assert {event.kind for event in made} == {"generic"}
