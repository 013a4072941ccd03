"""What tarazu changes on a running system: see it, judge it, approve it, take it back. The same for all levers.

tarazu change list                      what is set on this node, what is proposed, what was left to others
tarazu change undo --all                all of it as before tarazu, now; nothing new until `tarazu change apply`

The others look at one change (show, score), decide on it (approve, apply ID, undo ID), tell what happened (log), or
stop new changes (stop). The rest are about one lever each, or advise. More: docs/changes.md.
"""
