"""What applications do to files, wherever that is known from: Darshan logs, run history, generators."""
