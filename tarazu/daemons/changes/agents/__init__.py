"""The agents of a node, each with its directory and its levers: `agent_of(settings)` of one module each.

parameters   Lustre's parameters of this node that learn
drains       OSTs that get no new files for a while
"""
