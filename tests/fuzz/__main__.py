"""Try inputs of targets: `python -m tests.fuzz [TARGET ...] --inputs 5000 --seed 7`; exit code 1 where one fails."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from .driver import TARGETS, TIME_S, attempt, run


def main() -> int:
    """Print counts of each target, and an example of each place that failed."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)} (default: all)")
    parser.add_argument("--inputs", type=int, default=1000, help="of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--time", type=float, default=TIME_S, help="limit of an input, s")
    parser.add_argument("--only", type=int, help="try the input of this number in this process")
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no target {sorted(unknown)[0]!r}: {', '.join(TARGETS)}")
    failed = 0
    for target in arguments.targets or TARGETS:
        if arguments.only is not None:
            logging.basicConfig()
            attempt(target, arguments.seed, arguments.only)
            continue
        began_s = time.monotonic()
        report = run(target, arguments.seed, arguments.inputs, arguments.workers, arguments.time)
        places: dict[str, list[str]] = {}
        for failure in report.failures:
            places.setdefault(f"{failure.kind} {failure.place}", []).append(str(failure))
        for examples in sorted(places.values(), key=len):
            print(f"\n{len(examples)} x {examples[0]}")
        counts = ", ".join(f"{report.counts[kind]} {kind}" for kind in ("ok", "refused", "internal", "hang"))
        print(f"{target}: {counts}; seed {arguments.seed}, {time.monotonic() - began_s:.0f} s", flush=True)
        failed += len(report.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
