"""The API of `import batwatt`: runs, comparisons, campaigns and planners as functions, files as objects."""
