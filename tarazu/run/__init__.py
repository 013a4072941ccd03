"""What happens around a program: how a job step is read, led, placed and gathered by `tarazu run`."""
