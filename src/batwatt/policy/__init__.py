"""What decides: queue orders, placements, responses to a change of capacity, and the base that speaks pybatsim."""
