"""Engines behind one seam, pybatsim's `bs`: embedded, the same behind a socket, and a real Batsim."""
