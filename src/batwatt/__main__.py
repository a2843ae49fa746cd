"""The command `batwatt`, and `python -m batwatt`: a signal ends it in one line also while it loads and when it ends."""

# the module `signal` takes a while to be loaded itself
import _signal as signal  # type: ignore[import-not-found]
import gc
import os

SIGNALS = {getattr(signal, name): name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


def main() -> None:
    """Entry point: see `batwatt.cli.main.main`, whose imports take seconds."""
    for number in SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _end)
    # what is imported lives to the end, and would be gone through again and again
    gc.set_threshold(100_000, 20, 100)
    from batwatt.cli.main import main as command

    try:
        command()
    finally:
        # all goes at once now: no looking for what could go alone
        gc.freeze()


def _end(number: int, _: object) -> None:
    """Nothing is to be cleaned up, and what is half loaded would not let an exception through."""
    os.write(2, f"batwatt: ended by {SIGNALS[number]}\n".encode())
    os._exit(128 + number)


if __name__ == "__main__":
    main()
