"""What a job's files would have gained on other OSTs: `tarazu history whatif` and `report`."""
