"""What Prometheus gets of the daemons, each on an address of its own (`[metrics]`), nothing by default.

exporter    the HTTP server, and how it comes by figures of a loop that is single-threaded
histogram   durations and sizes, counted as they happen
mdsd, ossd, clientd, council, announcer   the families of each: names, help, where the figures come from

prometheus_client is imported by a daemon that has an address, and by no other.
"""
