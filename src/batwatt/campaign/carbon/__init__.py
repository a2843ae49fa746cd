"""Studies of carbon plans."""
