"""The evaluation of the powercap paper: its algorithms, what its tables print, what its figures show.

A. Fontana de Nardin, P. Stolf, S. Caux, Evaluation of heuristics to manage a data center under power constraints, IGSC
2022, sections VI and VII.
"""

from __future__ import annotations

from batwatt.report.report_plan import UNRESPONSIVE, Printed, ReportPlan, best_first, families
from batwatt.report.table import SavedCampaign

SOURCE = "the powercap paper (Fontana de Nardin, Stolf, Caux, IGSC 2022)"
WORKLOADS, PROFILES = "workloads", "profiles"
"""The two studies: many workloads on one profile, one workload on all profiles."""

BACKFILLINGS = {"first-fit": "FF", "easy": "EBF"}
ORDERS = {"fcfs": "FCFS", "asc": "Asc", "desc": "Desc", "slowdown": "Slow"}
RESPONSES = {"none": "no config.", "idfs": "IDFS", "iafs": "IAFS", "idsb": "IDSB", "iasb": "IASB", "hfld": "HFLD"}

BASELINE = "EBF Slow no config."
DISTANCES = {
    BASELINE: (0.43, 0.0, 184.0),
    "EBF Slow HFLD": (2.90, 19.0, 3.0),
    "FF Asc IDFS": (2.91, 28.0, 3.0),
    "FF Slow HFLD": (4.48, 14.0, 3.0),
    "EBF Slow IDSB": (2.12, 23.0, 6.0),
}
"""Table II: average increase of slowdown, kills and violations compared to the MILP, with profile 3."""
MARKS = {
    "EBF Slow HFLD": ("+", "++", "++"),
    "FF Asc IDFS": ("++", "", "+++"),
    "FF Slow HFLD": ("+", "+++", "++"),
    "EBF Slow IDSB": ("+++", "+", ""),
}
"""Table III: slowdown, kills, violations."""
ZOOMED = "EBF Slow HFLD"
OWN_DRAWN = 2
"""How many algorithms that the paper does not have are drawn: the best of them."""

REMARKS = {
    "table2": "The paper's optimum has no violation, no job killed and a slowdown of 1.44.",
    "figure2": "In the paper violations range from 3 to 7, jobs killed from 14 to 54 and slowdowns from 3.52 to 16.94.",
    "figure3": "Servers that are sent to sleep when the power drops still draw the power of switching off for some "
    "seconds (section VII-B1).",
    "figure6": "In the paper violations range from 0 to 6, jobs killed from 15 to 44 and slowdowns from 4.04 to 11.60.",
}


def plan_of(campaign: SavedCampaign) -> ReportPlan | None:
    """The plan of the report if the campaign is the paper's: it has the study and an algorithm of Table II."""
    here = [label for label in DISTANCES if label in campaign.labels]
    if WORKLOADS not in campaign.studies or not here:
        return None
    rows = campaign.frame.drop_duplicates("label").set_index("label")
    rows = rows[rows.index != campaign.reference]
    main = set(campaign.study(WORKLOADS)["label"])
    own = [str(label) for label in rows.index[~rows["response"].isin(["", *RESPONSES])] if label in main]
    best = best_first(campaign.per_instance(WORKLOADS), own)[:OWN_DRAWN]
    groups, members = families(campaign)
    for label, row in rows.iterrows():
        groups[str(label)] = RESPONSES.get(row["response"], groups[str(label)])
        if row["backfilling"] in BACKFILLINGS and row["order"] in ORDERS:
            members[str(label)] = f"{BACKFILLINGS[row['backfilling']]} {ORDERS[row['order']]}"
    unresponsive = [str(label) for label in rows.index[rows["response"] == UNRESPONSIVE]]
    return ReportPlan(
        title=f"Campaign {campaign.name}: the evaluation of {SOURCE}",
        main=WORKLOADS,
        highlighted=(*here, *own),
        drawn=(*here, *best),
        reference=campaign.reference,
        variants=PROFILES if PROFILES in campaign.studies else None,
        unresponsive=frozenset(unresponsive),
        baselines=(BASELINE, *unresponsive),
        zoomed=ZOOMED if ZOOMED in here else None,
        companions=tuple(best),
        groups=groups,
        members=members,
        printed=Printed("paper", DISTANCES, MARKS),
        remarks=REMARKS,
    )
