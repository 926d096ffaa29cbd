"""The layers that stand around a run, one a file."""
