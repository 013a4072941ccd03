"""The daemons' metrics for Prometheus, each daemon on an address of its own (`[metrics]`), off by default.

exporter    the HTTP server, and how it gets figures from a single-threaded loop
histogram   durations and sizes, counted as they happen
families    the short way to write one; each daemon's own are in its `figures`
server      the text that Prometheus gets

prometheus_client is imported by a daemon that has an address, and by no other.
"""
