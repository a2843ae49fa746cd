"""Options that a run resolves before the scheduler has them: files to be read, jobs to be held."""
