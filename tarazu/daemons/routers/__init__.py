"""Which LNet router a job's bulk data take: the rules that `tarazu-ossd --routers` sets on its server.

service      the loop: asks mdsd, has the answer applied by the engine of changes, takes rules back
"""
