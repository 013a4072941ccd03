"""tarazu-ossd: how one OSS and its OSTs are. `service.py` is its loop."""
