"""Helpers that know nothing of agents."""
