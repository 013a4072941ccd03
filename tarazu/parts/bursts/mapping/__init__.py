"""Which I/O node serves which compute node.

simple       contiguous, round robin (i % n), and round robin in as many rules as there are I/O nodes
together     one that knows which nodes burst together, from their history (`history`)
follow       one that follows the jobs that run, from hour to hour
judge        what a mapping gives: how the traffic of a period would have lain on the I/O nodes
hops         how far it is from nodes to their I/O nodes
rules        a mapping as rules by NIDs, as the file that mdsd follows, and as options of Lustre's modules
"""
