"""Jobs in phases under a carbon or price signal: when to run them, when to suspend them, what it costs."""
