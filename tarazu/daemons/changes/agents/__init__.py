"""The agents of a node, each with its directory and its levers: `agent_of(settings)` of one module each.

pools        OST pools, on the MGS's node
parameters   Lustre's parameters of this node: those that learn, and drained OSTs
mapping      the mapping of nodes to routers that mdsd follows
layouts      default layouts of a user's directories: his own, each job's
nodes        nodes and features asked of Slurm for jobs
"""
