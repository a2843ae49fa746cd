"""Planning one period between two changes of the number of processors, and one after another (docs/checkpoint.md)."""
