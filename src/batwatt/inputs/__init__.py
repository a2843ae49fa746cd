"""Readers and generators of the model: SimGrid XML, Batsim JSON, SWF, CSV series, synthetic workloads."""
