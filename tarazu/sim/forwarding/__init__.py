"""Paper A's study of how many and which I/O resources applications get: workloads, simulation, metrics, figures."""
