"""Why a run was slow: one run beside the same application's earlier ones, and beside the system as it was meanwhile.

A model that one can follow gives each cause its share of the lost time; what it does not explain stays "not known".
"""
