"""mdsd's side of routers for jobs.

nodes       which job steps run on which nodes, as their leaders say
scheduler   which nodes are whose job's, as the batch system says
confirmed   which of what leaders say counts
planner     which routers each job gets, and the rules that OSSs are told
"""
