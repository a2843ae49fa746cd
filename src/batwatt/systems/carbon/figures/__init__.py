"""Figures of carbon plans and of what they emit."""
