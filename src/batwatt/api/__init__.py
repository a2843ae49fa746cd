"""The API of `import batwatt`: runs, comparisons, studies and planners as functions, files as objects."""
