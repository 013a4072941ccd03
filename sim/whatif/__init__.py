"""What a job's files, or a history's, would have gained elsewhere: `tarazu whatif` and `tarazu report`."""
