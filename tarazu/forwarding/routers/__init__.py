"""Which LNet routers carry a job's bulk data: set on the servers, by the NIDs of the job's nodes.

udsp       what `lnetctl udsp show` says, and the commands that change rules
present    which rules are set, and which others can be beside them
hosts      which NIDs a host has
placing    which routers each running job gets, as rules
"""
