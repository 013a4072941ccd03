"""The levers: how each thing is read, set, compared; one file each.

client       a client's parameters: RPCs in flight, their size, read-ahead
"""
