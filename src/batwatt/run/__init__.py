"""One run: its specification, its inputs, and the files that it leaves."""
