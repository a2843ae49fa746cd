"""One room for each paper; none imports another."""
