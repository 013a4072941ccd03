"""The one agent by which a daemon, or a command, changes a running system.

agent       what a daemon has: proposals, approvals, limits, what came of it
engine      from what is wanted to what is set: noted before, read back after, taken back, left to others
store       an agent's directory: what is held, proposed, decided
trail       the one audit file
recovery    whether a target of this node is recovering
levers      how each thing is read and set
here        all agents of this node, for `tarazu change`
"""
