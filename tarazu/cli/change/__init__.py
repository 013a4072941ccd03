"""What tarazu changes on a running system: see it, judge it, approve it, take it back. The same for all levers.

    tarazu change list                what is proposed, set, left to somebody else, refused, held on this node
    tarazu change undo --all          take back all of it, now, and set nothing again; needs no daemon
    tarazu change apply               let the daemons go on after that

The others look at one change (show, score), decide on it (approve, apply ID, undo ID), tell what happened (log), or
let nothing new be made while what is set stays (stop). `drain`, `pool`, `prepare`, `rebalance`, `routers`, `tune` and
`bursts` are about one lever each. What is set by root is seen and taken back by root; a user has his own default
layouts. More: docs/changes.md.
"""
