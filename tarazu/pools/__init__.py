"""Pools of good OSTs: who belongs into one, decided from what mdsd says of each OST. Changes nothing by itself."""
