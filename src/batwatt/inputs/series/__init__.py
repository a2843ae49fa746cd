"""Series of time: envelopes, capacities, carbon and price signals."""
