"""Power per job: predictions of what jobs draw, and starts that check the sum of them under the envelope."""
