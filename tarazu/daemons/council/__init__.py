"""tarazu-council: what the nodes of a group should have in force, learned from what they see.

service   the loop: hears announcers, decides, tells them
nodes     whose announcer is listened to: groups, names, rates, what is stale
kept      what is on disk: knowledge, the mode that was ordered, how it is; written beside the loop
here      the same for `tarazu change tune` on the council's node, with or without a daemon
"""
