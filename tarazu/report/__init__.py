"""What remembered runs would have gained by placement, and why not the others: `tarazu history report`."""
