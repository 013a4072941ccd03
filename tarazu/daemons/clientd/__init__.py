"""tarazu-clientd: forecasts, layouts and the interaction database of a client node. `service.py` is its loop."""
