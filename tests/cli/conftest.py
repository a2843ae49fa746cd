"""The folders in which the tests of the command line run."""

from cli_house import endpoint, house, terminal  # noqa: F401 (fixtures)
