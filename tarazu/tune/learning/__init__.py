"""Learners by name: the paper's, and those that are better than it."""
