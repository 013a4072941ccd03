"""Which OSTs get which stripes: policies, the reservation ledger, costs and lower bounds."""
