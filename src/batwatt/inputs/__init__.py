"""Files and generators that make the model: SimGrid XML, Batsim JSON, SWF, CSV series, synthetic workloads."""
