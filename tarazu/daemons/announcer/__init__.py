"""tarazu-announcer: tells the council what one node sees of its I/O, and does what it decides.

service    the loop
following  whose decisions count: one council's, the newest, and not for ever
kind       what this node is: an OSS, an LNet router, a client
"""
