"""Engines behind one interface, pybatsim's `bs`: embedded, embedded behind a socket, and a real Batsim."""
