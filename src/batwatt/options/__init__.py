"""What options of a scheduler ask for before it has them: files to be read, jobs to be held."""
