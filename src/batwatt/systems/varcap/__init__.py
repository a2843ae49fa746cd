"""Jobs under a capacity that varies (varcap dissertation)."""
