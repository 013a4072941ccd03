"""The daemons: each a loop around the rooms of tarazu, in a folder of its own.

ossd       how one OSS or LNet router is
mdsd       the view of all servers, and where files go
clientd    a step's history → a plan; forecasts/ its processes

Beside them what all share. service: what each is, and its loop; with it secrets, service_manager (systemd: readiness,
watchdog, log).
"""
