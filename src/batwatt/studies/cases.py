"""Cases of a comparison: the preset, and cases by text, `NAME KEY=VALUE ...`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from batwatt.checks import shown
from batwatt.errors import InputError, UnknownNameError
from batwatt.results.compared import CaseFacts
from batwatt.run.arguments import one_of, options_from, options_of, wrong
from batwatt.run.find_scheduler import is_file_name, is_ours, scheduler_class, scheduler_names
from batwatt.run.spec import Follow, own_name
from batwatt.scheduling.base import Scheduler


@dataclass(frozen=True)
class Case:
    """A case: a scheduler, its options, and the part of the envelope that it follows: envelope, mean or none."""

    scheduler: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    follow: Follow = "envelope"

    @property
    def name(self) -> str:
        """Name of the scheduler, or of its class."""
        return self.scheduler if isinstance(self.scheduler, str) else str(self.scheduler.__name__)

    @property
    def draws(self) -> bool:
        """True if the scheduler has a seed that the case does not set."""
        kind = scheduler_class(self.scheduler)
        return issubclass(kind, Scheduler) and "seed" in kind.Options.model_fields.keys() - self.options.keys()

    @property
    def facts(self) -> CaseFacts:
        """Facts of the case for pages."""
        return CaseFacts(self.name, self.options, self.follow, self.draws)


SYSTEMS: Mapping[str, Case] = {
    "as today": Case("multifactor", {}, "none"),
    "no limit": Case("powercap", {"order": "fcfs", "backfilling": "easy", "response": "none"}, "none"),
    "constant": Case("varcap", {"termination": "random"}, follow="mean"),
    "kill at random": Case("varcap", {"termination": "random"}),
    "powercap HFLD": Case("powercap", {"order": "slowdown", "backfilling": "easy", "response": "hfld"}),
    "powercap frugal": Case("powercap", {"order": "slowdown", "backfilling": "easy", "response": "frugal"}),
    "riskaware": Case("riskaware", {"strategy": "packed-target-asap"}),
    "varcap LWW": Case("varcap", {"termination": "lww", "backfilling": "easy"}),
    "varcap long-short": Case("varcap", {"mapping": "longshort"}),
    "checkpoint": Case("checkpoint"),
    "carbon": Case("carbon", {"policy": "oracle", "wait_h": [6.0, 24.0]}),
    "adaptive": Case("adaptive"),
}
"""References, the best known setting of each system by its paper or by measurement, and a scheduler of their parts."""
PRESET = "systems"
"""Text that stands for all of `SYSTEMS`."""
_HINT = "write a name, 'varcap termination=lww', LABEL=CASE, mine.py, or 'systems' for all systems"


def cases_of(values: Any, where: str = "cases") -> dict[str, Case]:
    """Return cases by label, of a text, a class, a `Case`, several of these, or a dict of these by label.

    The label of a text is the text, that of a class its name; `systems` stands for all of `SYSTEMS`. Raises InputError.
    """
    if isinstance(values, Mapping):
        return {_checked_label(label, where): _case(label, value, where) for label, value in values.items()}
    if isinstance(values, str | type | Case):
        values = [values]
    if not isinstance(values, Iterable) or isinstance(values, bytes):
        raise wrong(where, "a text such as 'systems', a list of cases, or a dict of cases", values, "see batwatt.Case")
    cases: dict[str, Case] = {}
    for value in values:
        if value == PRESET:
            more: Mapping[str, Case] = SYSTEMS
        elif isinstance(value, str):
            more = dict([parse_case(value, where)])
        elif isinstance(value, type):
            more = {value.__name__: Case(value)}
        else:
            raise wrong(where, "a text, a class, or a dict of cases by label", value, "see batwatt.Case")
        for label, case in more.items():
            if label in cases:
                raise InputError(where, f"there are two cases {label!r}", "choose another label: LABEL=CASE")
            cases[label] = case
    return cases


def parse_case(text: str, where: str = "cases") -> tuple[str, Case]:
    """Return label and case of a text. Raises InputError.

    A text is the label of one of `SYSTEMS`; NAME with options as KEY=VALUE or as a JSON object, where NAME is a
    scheduler's, or the path of its file; or LABEL=CASE, where the case may be only the JSON options of powercap.
    """
    stripped = text.strip()
    case = _unlabelled(stripped, where)
    if case is not None:
        return _checked_label(stripped, where), case
    label, sign, rest = (part.strip() for part in stripped.partition("="))
    if not (sign and label and rest):
        if not sign and stripped:
            # an unknown name, which the search of schedulers explains
            scheduler_class(stripped.split()[0])
        raise InputError(where, f"{text!r} is no case", _HINT)
    case = Case("powercap", options_from([rest], f"{where} {label}")) if rest[0] == "{" else _unlabelled(rest, where)
    if case is None:
        raise _no_case(stripped, rest, where)
    return _checked_label(label, where), case


def _unlabelled(text: str, where: str) -> Case | None:
    """Return the case of a text without a label; None if it begins with no scheduler, or has words that are none."""
    if text in SYSTEMS:
        # another object: a case of the preset may be left out, this one not
        return replace(SYSTEMS[text])
    name, brace, _ = text.partition("{")
    words = _words(name, where)
    if not words or not _is_scheduler(words[0]):
        return None
    if brace:
        return Case(words[0], options_from([text[len(name) :]], f"{where} {words[0]}")) if len(words) == 1 else None
    keys = [word.partition("=")[0] for word in words[1:]]
    declared = _declared(words[0])
    if not all("=" in word for word in words[1:]) or (declared is not None and not declared >= set(keys)):
        return None
    return Case(words[0], options_from(words[1:], f"{where} {words[0]}"))


def _words(text: str, where: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(where, f"{text!r} cannot be read ({error})", "close the quotation") from None


def _is_scheduler(name: str) -> bool:
    """Return whether a word names a scheduler: one of ours, of pybatsim's, or a file; a label may have `=`."""
    if "=" in name:
        return False
    return own_name(name) in scheduler_names() or is_file_name(name)


def _declared(name: str) -> set[str] | None:
    """Return the options of one of our schedulers; None for another one, which may take any."""
    name = own_name(name)
    return {*scheduler_class(name).Options.model_fields} if is_ours(name) else None


def _no_case(text: str, rest: str, where: str) -> InputError:
    """Return the error for a text that is no case: an unknown option, or an unknown scheduler behind the label."""
    names = _words(rest.partition("{")[0], where)
    if not names:
        return InputError(where, f"{text!r} is no case", _HINT)
    first = _words(text.partition("{")[0], where)[0]
    if _is_scheduler(first):
        declared = _declared(first) or set()
        for word in _words(text, where)[1:]:
            key = word.partition("=")[0]
            if key not in declared:
                hint = f"See `batwatt policies {first}`."
                return UnknownNameError(f"{where} {first}", "option", key, declared, hint)
    if not _is_scheduler(names[0]):
        # its error explains an unknown name
        scheduler_class(names[0])
    return InputError(where, f"{text!r} is no case", _HINT)


def _checked_label(label: Any, where: str) -> str:
    if not (isinstance(label, str) and label and label.isprintable()):
        raise InputError(where, f"a label must be a text in one line, got {shown(label)}", "write another name")
    return label


def _case(label: str, value: Any, where: str) -> Case:
    """Return a checked case of a dict: a `Case`, a class or a text. Raises InputError."""
    place = f"case {shown(label)}"
    if isinstance(value, type):
        return Case(value)
    if isinstance(value, str):
        case = _unlabelled(value.strip(), place)
        if case is None:
            raise _no_case(value.strip(), value.strip(), place)
        return case
    if not isinstance(value, Case):
        raise InputError(place, f"must be a Case, got {type(value).__name__}", 'write Case("varcap", {...})')
    if not isinstance(value.scheduler, str | type):
        raise wrong(f"{place}: scheduler", "a name or a class", value.scheduler)
    if value.options is None:
        raise wrong(f"{place}: options", "a dict with names as keys", None, "give for instance {}")
    options_of(f"{place}: options", value.options)
    one_of(get_args(Follow))(f"{place}: follow", value.follow)
    return value
