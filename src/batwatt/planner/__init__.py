"""The offline optimum: a schedule made with full knowledge of jobs and envelope, its lower bound, its plan file."""
