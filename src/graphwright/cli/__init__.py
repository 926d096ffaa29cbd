"""The command line: `graphwright demo`, `run`, `chat`, `runs`, `graph` and `models`, one file a command."""
