"""The agents of a node, each with its directory and its levers: `agent_of(settings)` of one module each.

pools        OST pools, on the MGS's node
parameters   Lustre's parameters of this node: those that learn, and drained OSTs
directories  on which MDT new subdirectories of a directory are made
"""
