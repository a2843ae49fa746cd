"""Cases of a comparison by text: what each text means, and what is no case."""

import pytest

from batwatt.errors import InputError
from batwatt.studies.cases import SYSTEMS, Case, cases_of, parse_case


class Mine:
    """A class stands for itself; a run finds out whether it is a scheduler."""


@pytest.mark.parametrize(
    ("text", "label", "case"),
    [
        ("adaptive", "adaptive", Case("adaptive")),
        ("as today", "as today", Case("multifactor", {}, "none")),
        (" easyBackfill ", "easyBackfill", Case("easyBackfill")),
        ("mine/mine.py", "mine/mine.py", Case("mine/mine.py")),
        ("varcap termination=lww", "varcap termination=lww", Case("varcap", {"termination": "lww"})),
        (
            "carbon policy=oracle wait_h=[6,24]",
            "carbon policy=oracle wait_h=[6,24]",
            Case("carbon", {"policy": "oracle", "wait_h": [6, 24]}),
        ),
        ('varcap {"k": 1}', 'varcap {"k": 1}', Case("varcap", {"k": 1})),
        ("LWW=varcap termination=lww", "LWW", Case("varcap", {"termination": "lww"})),
        ("varcap LWW=varcap termination=lww", "varcap LWW", Case("varcap", {"termination": "lww"})),
        ("today=as today", "today", Case("multifactor", {}, "none")),
        ('HFLD={"response": "hfld"}', "HFLD", Case("powercap", {"response": "hfld"})),
        ("mine.py switch=true seed=3", "mine.py switch=true seed=3", Case("mine.py", {"switch": True, "seed": 3})),
        ("quoted=mine.py text='a b'", "quoted", Case("mine.py", {"text": "a b"})),
    ],
)
def test_a_text(text, label, case):
    assert parse_case(text) == (label, case)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is no case; write a name"),
        ("varcap terminaton=lww", "cases varcap: no option 'terminaton'; did you mean 'termination'?"),
        ("powercap dvfs=null k=3", "cases powercap: no option 'dvfs'"),
        ('a=b=powercap {"order": "fcfs"}', "no scheduler 'b=powercap'"),
        ("varcap lww", "'varcap lww' is no case"),
        ("vracap", "no scheduler 'vracap'; did you mean 'varcap'?"),
        ("x=vracap", "no scheduler 'vracap'; did you mean 'varcap'?"),
        ("x=", "'x=' is no case"),
        ("x=varcap {", "is not JSON"),
        ("varcap 'x", "cannot be read"),
        ("varcap seed=1 seed=2", "gives 'seed' twice"),
        ("a\nb=varcap", "a label must be a text in one line"),
    ],
)
def test_what_is_no_case(text, problem):
    with pytest.raises(InputError, match=r"^[^\n]*$") as refused:
        parse_case(text)
    assert problem in str(refused.value)


def test_several_cases():
    assert cases_of("systems") == SYSTEMS
    both = cases_of(["systems", "varcap termination=lww", Mine])
    assert list(both) == [*SYSTEMS, "varcap termination=lww", "Mine"] and both["Mine"] == Case(Mine)
    named = cases_of({"a": "adaptive", "b": Mine, "c": Case("easy"), "d": "varcap seed=2"})
    assert list(named.values()) == [Case("adaptive"), Case(Mine), Case("easy"), Case("varcap", {"seed": 2})]
    # a case of the preset may be left out, the same one by name not
    assert cases_of("systems")["carbon"] is SYSTEMS["carbon"] and cases_of("carbon")["carbon"] is not SYSTEMS["carbon"]
    with pytest.raises(InputError, match="there are two cases 'adaptive'; choose another label: LABEL=CASE"):
        cases_of(["systems", "adaptive"])
    for values in (3, b"x", [3], {"a": 3}, {"": "easy"}, {"a": "nothing"}, {"a": ""}, {"a": "{"}):
        with pytest.raises(InputError):
            cases_of(values)
