"""The claims of the powercap paper's section VII."""

from __future__ import annotations

from papers.claims import Claim, counted
from papers.igsc22.frames import KILLS, SLOWDOWN, VIOLATIONS, WORK, Numbers, is_tie

BASELINE = "EBF Slow no config."
HFLD, IDSB, IDFS, FIRST_FIT = "EBF Slow HFLD", "EBF Slow IDSB", "EBF Slow IDFS", "FF Slow HFLD"
TABLE2 = (HFLD, "FF Asc IDFS", FIRST_FIT, IDSB)
"""The algorithms of Table II that respond to the envelope."""
SCARCE = ("profile1", "profile2")


def baseline(numbers: Numbers) -> tuple[str, str]:
    """Test if the response `none` has the best slowdown, the most violations and no kill."""
    slowdown, violations, kills = (numbers.mean(BASELINE, name) for name in (SLOWDOWN, VIOLATIONS, KILLS))
    others = [numbers.mean(label, SLOWDOWN) for label in TABLE2]
    text = f"{slowdown:.2f}, {violations:.0f} violations, {kills:.0f} kills; best response {min(others):.2f}"
    most = violations > 10.0 * max(numbers.mean(label, VIOLATIONS) for label in TABLE2)
    return text, counted(slowdown < min(others) and most and kills == 0.0)


def single_digits(numbers: Numbers) -> tuple[str, str]:
    """Test if each response has fewer than ten violations."""
    means = numbers.means("workloads")[VIOLATIONS]
    values = [value for label, value in means.items() if label.split()[-1] in ("IDFS", "IAFS", "IDSB", "IASB", "HFLD")]
    return f"{min(values):.1f} to {max(values):.1f}", counted(max(values) < 10.0)


def violations_of_idsb(numbers: Numbers) -> tuple[str, str]:
    """Test if IDSB has more violations than the other responses of Table II."""
    three = [numbers.mean(label, VIOLATIONS) for label in (IDSB, HFLD, "FF Asc IDFS")]
    two = [numbers.mean(label, VIOLATIONS, "readings", "profile2") for label in (IDSB, HFLD, IDFS)]
    text = "IDSB, HFLD, IDFS: profile 3 {:.1f}, {:.1f}, {:.1f}; profile 2 {:.1f}, {:.1f}, {:.1f}".format(*three, *two)
    return text, counted(sum(round(one[0], 1) > round(max(one[1:]), 1) for one in (three, two)), 2)


def kills_of_idfs(numbers: Numbers) -> tuple[str, str]:
    """Test if IDFS kills more jobs than HFLD."""
    cells = [(IDFS, HFLD, envelope) for envelope in ("profile3", *SCARCE)]
    pairs = [
        tuple(numbers.mean(label, KILLS, "readings", envelope) for label in (one, other))
        for one, other, envelope in cells
    ]
    text = "profiles 3, 1, 2: " + ", ".join(f"{one:.1f} against {other:.1f}" for one, other in pairs)
    return text, counted(all(one > other for one, other in pairs))


def fewest_kills(numbers: Numbers) -> tuple[str, str]:
    """Test if FF Slow HFLD kills fewest of Table II."""
    kills = {label: numbers.mean(label, KILLS) for label in TABLE2}
    text = ", ".join(f"{label} {kills[label]:.1f}" for label in (FIRST_FIT, HFLD, IDSB))
    return text, counted(kills[FIRST_FIT] == min(kills.values()))


def finished_work(numbers: Numbers) -> tuple[str, str]:
    """Test if HFLD finishes more work than IDFS and IDSB."""
    hfld, idfs, idsb = (numbers.mean(label, WORK) for label in (HFLD, IDFS, IDSB))
    text = f"EBF Slow: HFLD {hfld:.1f} %, IDFS {idfs:.1f} %, IDSB {idsb:.1f} %"
    return text, counted((hfld > idfs) + (hfld > idsb), 2)


def slowdown_of_idsb(numbers: Numbers) -> tuple[str, str]:
    """Test if IDSB has the best slowdown of the responses."""
    idsb, hfld, idfs = (numbers.mean(label, SLOWDOWN) for label in (IDSB, HFLD, IDFS))
    return f"EBF Slow: IDSB {idsb:.2f}, HFLD {hfld:.2f}, IDFS {idfs:.2f}", counted(idsb < min(hfld, idfs))


def first_fit(numbers: Numbers) -> tuple[str, str]:
    """Test if first-fit is worse in slowdown than EASY under HFLD, and most of all under the scarcer profiles."""
    pairs = [
        [numbers.mean(label, SLOWDOWN, "readings", envelope) for label in (FIRST_FIT, HFLD)]
        for envelope in ("profile3", *SCARCE)
    ]
    text = "profiles 3, 1, 2: " + ", ".join(f"{one:.2f} against {other:.2f}" for one, other in pairs)
    usual, *scarce = (one - other for one, other in pairs)
    return text, counted(0.0 < usual < min(scarce))


def ascending(numbers: Numbers) -> tuple[str, str]:
    """Test if IDFS has a better slowdown in ascending than in descending order."""
    up, down = (numbers.mean(f"FF {order} IDFS", SLOWDOWN) for order in ("Asc", "Desc"))
    return f"FF Asc IDFS {up:.2f}, FF Desc IDFS {down:.2f}", counted(up < down)


def kills_by_profile(numbers: Numbers) -> dict[str, dict[str, float]]:
    """Return the kills of Table II on one workload, by profile and algorithm."""
    return {
        f"profile{n}": {label: numbers.mean(label, KILLS, "profiles", f"profile{n}") for label in TABLE2}
        for n in (1, 2, 3)
    }


def most_kills_of_idfs(numbers: Numbers) -> tuple[str, str]:
    """Test if IDFS kills most under profiles 1 and 3."""
    kills = kills_by_profile(numbers)
    values = [cell["FF Asc IDFS"] for cell in kills.values()]
    most = [cell["FF Asc IDFS"] == max(cell.values()) for cell in kills.values()]
    text = "{:.0f}, {:.0f}, {:.0f} under profiles 1, 2, 3".format(*values)
    return f"{text}: the most under {'all three' if all(most) else sum(most)}", counted(most[0] and most[2])


def fewest_kills_of_hfld(numbers: Numbers) -> tuple[str, str]:
    """Test if an HFLD kills fewest under every profile."""
    best = {name: min(cell, key=cell.__getitem__) for name, cell in kills_by_profile(numbers).items()}
    kills = kills_by_profile(numbers)
    text = ", ".join(f"{label} ({kills[name][label]:.0f})" for name, label in best.items())
    return f"under profiles 1, 2, 3: {text}", counted(sum("HFLD" in label for label in best.values()), 3)


def balanced(numbers: Numbers) -> tuple[str, str]:
    """Test if EBF Slow HFLD is not worse than EBF Slow IDSB in kills, in both readings of Algorithm 1."""
    names = ("", " in turns")
    verdicts = []
    for name in names:
        differences = [numbers.paired("readings", f"profile{n}", f"{HFLD}{name}", IDSB)[KILLS] for n in (1, 2, 3)]
        verdicts.append(all(one.mean() < 0.0 or is_tie(one) for one in differences))
    words = ["as few kills as IDSB" if good else "more kills than IDSB" for good in verdicts]
    return f"by the letter {words[0]}, in turns {words[1]}", counted(sum(verdicts), 2)


CLAIMS = (
    Claim(
        "No configuration has the best slowdown, by far the most violations, and kills nothing", "Table II", baseline
    ),
    Claim("Every response brings violations down to 3 to 7", "Figure 2", single_digits),
    Claim("IDSB has the most violations of the responses", "VII-A, Table II", violations_of_idsb),
    Claim("IDFS kills more than HFLD", "VII-A", kills_of_idfs),
    Claim("FF Slow HFLD kills fewest", "VII-B2", fewest_kills),
    Claim("HFLD finishes more work than IDFS and IDSB", "Figure 4", finished_work),
    Claim("IDSB has the best slowdown of the responses", "VII-B3", slowdown_of_idsb),
    Claim(
        "First-fit HFLD has a worse slowdown than EASY HFLD, most of all where power is scarce", "VII-B3, 4", first_fit
    ),
    Claim("IDFS does well in slowdown because ascending order serves small jobs first", "VII-B3", ascending),
    Claim("One workload: IDFS kills most under profiles 1 and 3", "Figure 6", most_kills_of_idfs),
    Claim("One workload: HFLD kills fewest under every profile", "Figure 6", fewest_kills_of_hfld),
    Claim("EBF Slow HFLD is the balanced choice", "Table III", balanced),
)
