"""What was recorded elsewhere: SWF, CSV, Azure, Borg; and its conversion to workloads."""
