"""What a job's files, or a history's, would have gained elsewhere: `tarazu history whatif` and `report`."""
