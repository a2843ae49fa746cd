"""The page of `batwatt compare --preset systems`: who wins on what, who suffers, power over time."""
