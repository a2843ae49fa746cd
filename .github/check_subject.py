"""Check the message of a commit: a subject of at most 72 characters, then a blank line before the reason."""

import sys
from pathlib import Path

MOST = 72


def problem(message: str) -> str | None:
    """Return what is wrong with a message, None if nothing is."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    if not lines or not lines[0].strip():
        return "the subject is empty"
    if len(lines[0]) > MOST:
        return f"the subject has {len(lines[0])} characters, at most {MOST} are allowed: {lines[0]}"
    if len(lines) > 1 and lines[1].strip():
        return "the second line must be blank"
    return None


if __name__ == "__main__":
    wrong = problem(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.exit(f"commit message: {wrong}" if wrong else 0)
