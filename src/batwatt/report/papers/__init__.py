"""What the report has for one paper alone."""
