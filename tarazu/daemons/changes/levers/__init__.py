"""The levers: how each thing is read, set, compared; one file each.

drain        a parameter that keeps new files off an OST
"""
