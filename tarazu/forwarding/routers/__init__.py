"""Which LNet routers carry a job's bulk data: set on the servers, by the NIDs of the job's nodes.

nids         NIDs and their folded patterns
udsp         what `lnetctl udsp show` says, and the commands that change rules
overlap      rules for the same nodes, of which there must be one only
difference   which rules to delete and to add
hosts        host names, and the NIDs of each
placing      which routers each running job gets, as rules
"""
