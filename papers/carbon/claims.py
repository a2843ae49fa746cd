"""The claims of the carbon thesis: chapter 6 and the author's final text, the solver, and the measured job."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from papers.claims import NO, PARTLY, YES, Claim, counted

Tables = Mapping[str, pd.DataFrame]
"""Tables of the page and of data/, as texts."""
PHASES = ("start-up", "training", "evaluate", "save")


def values(tables: Tables, name: str, column: str) -> pd.Series:
    """Return a column of numbers, by the first column."""
    table = tables[name]
    texts = table[column].str.replace(",", "").str.replace("−", "-")
    return pd.to_numeric(texts, errors="coerce").set_axis(table.iloc[:, 0])


def definitive(tables: Tables) -> tuple[str, str]:
    """Test if every plan is exact: the study ends without a time limit."""
    return f"all {values(tables, 'overall', 'plans').sum():,.0f} optima are exact", NO


def suspending(tables: Tables) -> tuple[str, str]:
    """Test if suspending gains less than a point for jobs up to 4 h, several for 16 h."""
    gains = values(tables, "final", "by interrupting").set_axis(tables["final"]["length, h"].astype(float))
    short, long = gains[gains.index <= 4.0], gains[16.0]
    text = f"up to 4 h of work {short.max():.2f} points at most, 16 h {long.min():.1f} to {long.max():.1f}"
    return text, counted(short.max() < 1.0 < long.min())


def phases(tables: Tables) -> tuple[str, str]:
    """Test if knowing phases gains less than a tenth of a point for each pattern."""
    gains = [values(tables, name, "phases in pieces, points").max() for name in ("patterns", "final-patterns")]
    text = f"{gains[0]:.3f} points at most in chapter 6, {gains[1]:.3f} in the final text's jobs"
    return text, counted(max(gains) < 0.1)


def emit_more(tables: Tables) -> tuple[str, str]:
    """Test if no job emits more in pieces than in one piece."""
    share = values(tables, "author", "at all arrivals, % of jobs")["pieces emit more than one piece"]
    return f"{share:.1f} % of the plans", counted(share > 0.0)


def too_large(tables: Tables) -> tuple[str, str]:
    """Test if the dynamic programme solves the largest case."""
    last = tables["solver"].iloc[-1]
    took, added = last["dynamic programme: time"], last["dynamic programme: added, MiB"]
    return f"dynamic programme: {took} times its first row, {added} MiB", NO


def listing(tables: Tables) -> tuple[str, str]:
    """Test if the phases of Listing 5.6 have less energy than the measured runs."""
    thesis = values(tables, "fit", "thesis")
    phases_j = {name: thesis[f"{name}, s"] * thesis[f"{name}, W"] for name in PHASES}
    energy_kj = (phases_j["start-up"] + 5 * sum(phases_j[name] for name in PHASES[1:])) / 1e3
    return f"{energy_kj:.2f} kJ", counted(abs(energy_kj - thesis["straight, kJ"]) < 0.05)


def power(tables: Tables) -> tuple[str, str]:
    """Test if the RMSE of the power is the thesis's."""
    rmse = tables["fit"].set_index("figure").loc["power, leaving one out: RMSE, W"]
    return f"{rmse['fitted']} W, on data drawn to its figures", counted(rmse["fitted"] == rmse["thesis"])


def energy(tables: Tables) -> tuple[str, str]:
    """Test if the mean error of the energy is 0 for any data."""
    error = values(tables, "fit", "fitted")["energy, leaving one out: mean error, kJ"]
    return f"{error:.1f} kJ, for any data, if powers are mean energies by mean durations", counted(error < 0.0)


def share(tables: Tables) -> tuple[str, str]:
    """Test if the start-up is somewhat more than a quarter."""
    thesis = values(tables, "fit", "thesis")
    work_s = 5 * sum(thesis[f"{name}, s"] for name in PHASES[1:])
    percent = 100.0 * thesis["start-up, s"] / (thesis["start-up, s"] + work_s)
    return f"{percent:.0f} % by its own listing", YES if abs(percent - 25.0) < 1.0 else PARTLY


def resumed(tables: Tables) -> tuple[str, str]:
    """Test if a resumed start-up takes two thirds of the energy of the first."""
    thesis = values(tables, "fit", "thesis")
    again = thesis["suspended after a save, resumed, kJ"] - thesis["straight, kJ"]
    first = thesis["start-up, s"] * thesis["start-up, W"] / 1e3
    return f"{again:.2f} kJ instead of {first:.2f}: more than a few seconds", counted(again > 0.8 * first)


def aborted(tables: Tables) -> tuple[str, str]:
    """Test if the difference of both interruptions is one training phase."""
    thesis = values(tables, "fit", "thesis")
    lost = thesis["aborted before the second save, resumed, kJ"] - thesis["suspended after a save, resumed, kJ"]
    phase = thesis["training, s"] * thesis["training, W"] / 1e3
    return f"{lost:.2f} kJ, a phase has {phase:.2f}", counted(abs(lost - phase) < 0.05)


CLAIMS = (
    Claim(
        "No definitive answer to the three questions: a sixth of the optima hit a time limit", "final text", definitive
    ),
    Claim("Suspending pays for very long jobs with long waits only", "final text", suspending),
    Claim("Phases have no clear effect", "final text", phases),
    Claim("Some jobs emit more when suspended", "final text", emit_more),
    Claim("5,000 slots with 800 of work are too large to solve", "5.3.3", too_large),
    Claim("The phases of Listing 5.6 are the measured job of 12.97 kJ", "4.2, 5.3.1", listing),
    Claim("Power, leaving one run out: RMSE 39.3 W", "4.2", power),
    Claim("Energy, leaving one run out: -0.1 kJ", "4.2", energy),
    Claim("The start-up is about 25 % of the run", "4.1", share),
    Claim("A resumed job starts up a few seconds faster", "4.1", resumed),
    Claim("An aborted run takes another training phase", "4.1", aborted),
)
