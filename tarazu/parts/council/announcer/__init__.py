"""tarazu-announcer: reports one node's I/O to the council, and sets what it decides.

service    the loop
following  which decisions count: the newest of one council, for a limited time
kind       what this node is: an OSS, a client
"""
