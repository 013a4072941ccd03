"""tarazu-mdsd: the view of the whole system, and where files go. `service.py` is its loop."""
