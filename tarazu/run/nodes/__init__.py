"""The other nodes of a job step: how they are reached, what is sent to them, what comes back."""
