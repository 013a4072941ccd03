"""Paper A's study of I/O resources: workloads, simulation, metrics, figures."""
