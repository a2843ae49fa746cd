"""The command `batwatt`, and `python -m batwatt`; a signal ends it with one line also while it loads or ends."""

# the module `signal` takes a while to be loaded itself
import _signal as signal  # type: ignore[import-not-found]
import gc
import os

SIGNALS = {getattr(signal, name): name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


def main() -> None:
    """Run `batwatt.cli.main.main`, whose imports take seconds."""
    for number in SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _end)
    # imported objects live to the end: collections of garbage would visit them again and again
    gc.set_threshold(100_000, 20, 100)
    from batwatt.cli.main import main as command

    try:
        command()
    finally:
        # the process ends: collect no garbage
        gc.freeze()


def _end(number: int, _: object) -> None:
    """Exit at once: there is nothing to clean up, and a half loaded module may catch an exception."""
    os.write(2, f"batwatt: ended by {SIGNALS[number]}\n".encode())
    os._exit(128 + number)


if __name__ == "__main__":
    main()
