"""The generators of the papers: shipped files are what they write."""

from __future__ import annotations

from batwatt.files import read_text
from batwatt.study.benchmark import JOBS
from papers.generators import benchmark


def test_the_jobs_of_the_benchmark(quiet):
    assert benchmark.text() == read_text(JOBS)
