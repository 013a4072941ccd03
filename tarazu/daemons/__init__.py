"""The daemons: each a loop around the rooms of tarazu, in a folder of its own.

ossd       how one OSS or LNet router is
mdsd       the view of all servers, and where files go
clientd    a step's history → a plan; forecasts/ its processes
council    what nodes of a group should have in force, learned from what they see
announcer  tells the council what a node sees, and has set what it decides
levers     sets a parameter, and restores what was there
pool       keeps an OST pool of good OSTs
page       a read-only page of the whole system
metrics    for Prometheus: families, and the server that all share

Beside them what all share. service: what each is, and its loop; with it secrets, service_manager (systemd: readiness,
watchdog, log); noted (what is set on a node is on disk before), program (calls of lnetctl and lctl).
"""
