"""Policies to compare with: Lustre's own allocator as a model, the paper's taken literally, and the simplest ones."""
