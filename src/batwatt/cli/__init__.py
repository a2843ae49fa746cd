"""The command `batwatt`: one module for each group of commands."""
