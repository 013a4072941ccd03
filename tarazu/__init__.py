"""Tarazu."""
