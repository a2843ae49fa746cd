"""`python -m batwatt` is the command `batwatt`."""

from batwatt.cli import main

if __name__ == "__main__":
    main()
