"""What applications do to files: from Darshan logs, run history, generators."""
