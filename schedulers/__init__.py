"""One small file per system of the papers; installed as `batwatt.schedulers`, loadable by path with pybatsim."""
