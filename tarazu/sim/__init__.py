"""Lustre without Lustre: the testbed, and what is measured on it or on models (installed as `tarazu.sim`)."""
