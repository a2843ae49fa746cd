"""The command `generate envelope`."""

from __future__ import annotations

import pytest

from batwatt.inputs.series.series_csv import read_series

SUN = "datetime,power_kw\n2024-06-01 00:00,0\n2024-06-01 01:00,2\n2024-06-01 02:00,8\n2024-06-01 03:00,4\n"


def test_generated_envelopes(house):
    sun, out, soc = house.write("sun.csv", SUN), house.out / "e.csv", house.out / "soc.csv"
    assert house.batwatt("generate", "envelope", f"power:{sun}", "constant:50", "-o", out).code == 0
    assert out.read_text() == "time_s,power_w\n0,50\n3600,2050\n7200,8050\n10800,4050\n"
    battery = "battery:capacity_kwh=10,demand_w=3000,initial_soc=1,step=3600"
    words = ("generate", "envelope", f"power:{sun} + {battery}", "--state-of-charge", soc, "-o", out)
    assert house.batwatt(*words).code == 0
    # 4 of the 8 kW are charged, then it is full
    assert (read_series(out).times_s, read_series(out).values) == ((0.0, 7200.0), (3000.0, 4000.0))
    assert soc.read_text() == "time_s,state_of_charge\n0,1\n3600,0.7\n7200,0.6\n10800,1\n14400,1\n"
    done = house.batwatt("generate", "envelope", "constant:7", "--end", "60")
    assert (done.code, done.out) == (0, "time_s,power_w\n0,7\n")
    done = house.batwatt("generate", "envelope", "walk:range=0.6,seed=1,level=0", "--end", 3600, "--full-w", 1000)
    assert done.out == "time_s,power_w\n0,700\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sun.csv",), "ENVELOPE: 'sun.csv' describes no envelope; write for instance power:solar.csv"),
        (("constant:5", "5"), "envelope 'constant:5 + 5': '5' has no kind"),
        (("constant:5", "--state-of-charge", "x.csv"), "--state-of-charge: there is no battery; add for instance"),
        (("walk:range=0.6",), "walk:range=0.6: is a share of the power of the whole machine, which is not known"),
        (("power:none.csv",), "none.csv: cannot be read"),
    ],
)
def test_envelopes_that_are_refused(house, words, said):
    done = house.batwatt("generate", "envelope", *words)
    assert done.code == 2 and said in done.line
