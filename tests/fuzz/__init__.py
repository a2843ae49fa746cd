"""Hostile inputs, drawn by hypothesis: each is read, or refused in one line (`test_fuzz.py`)."""
