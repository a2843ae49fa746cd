"""What `import batwatt` offers: runs, comparisons, campaigns and planners as functions, files as objects."""
