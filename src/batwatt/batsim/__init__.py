"""Batsim's side of a scheduler: pybatsim's `bs`, the dialects of Batsim 4 and 5, the wire and the launch."""
