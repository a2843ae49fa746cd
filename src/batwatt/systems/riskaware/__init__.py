"""Risk-aware mapping of jobs to machines that come and go (riskaware paper)."""
