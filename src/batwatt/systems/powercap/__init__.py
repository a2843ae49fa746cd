"""Jobs under a power envelope (powercap paper)."""
