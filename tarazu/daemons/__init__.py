"""The daemons: each a loop around the rooms of tarazu, in a folder of its own.

ossd       how one OSS or LNet router is
mdsd       the view of all servers, and where files go
clientd    a step's history → a plan; forecasts/ its processes
changes    the one agent by which a running system is changed

Beside them what all share. service: what each is, and its loop; with it secrets, service_manager (systemd: readiness,
watchdog, log); noted (what is set on a node is on disk before), program (calls of lnetctl and lctl).
"""
