"""One run: what determines it, its inputs, and the files that it leaves."""
