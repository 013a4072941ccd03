"""`tarazu doctor`: is this node as tarazu needs it? Each topic is a file with one function, `look(node)`, that gives
findings and changes nothing; `examine` runs those that concern the node's roles.
"""
