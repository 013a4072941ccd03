"""Policies to compare with: a model of Lustre's own allocator, the paper's, and simple ones."""
