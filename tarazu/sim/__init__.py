"""Lustre without Lustre: the testbed, the simulator and the studies."""
