"""LNet routers: which of them carry which nodes' bulk data is set on the servers, by the nodes' NIDs.

udsp       what `lnetctl udsp show` says, and the commands that change rules
hosts      which NIDs a host has
"""
