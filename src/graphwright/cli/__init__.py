"""The command line: `graphwright demo`, `run`, `graph` and `models`, one file a command."""
