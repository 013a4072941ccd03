"""Which LNet router a job's bulk data take: the rules that `tarazu-ossd --routers` sets on its server.

service      the loop: asks mdsd, applies the answer, takes rules back
keeper       from the wanted rules to lnetctl's calls, within the limits; what `tarazu change routers --undo` calls
kept         what is noted on disk before anything is set
lnetctl      one call of lnetctl at a time, never longer than a few seconds
"""
