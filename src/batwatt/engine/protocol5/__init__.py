"""Batsim 5 (v5.0.0-rc2) for an external decision component: its rules on the embedded engine, and its JSON dialect."""
