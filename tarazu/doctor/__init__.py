"""`tarazu doctor`: is this node as tarazu needs it?

Each topic is a file with one function, `look(node)`, that returns findings and changes nothing; `examine` runs those
that concern the node's roles.
"""
