"""Parameters of Lustre that this node's tarazu sets: never without a note of what was there.

keeper       from the wanted values to lctl's calls; what `tarazu change tune --undo` calls
kept         what is noted on disk before anything is set
drained      parameters that keep new files off an OST, for `tarazu change drain`
lctl         one call of lctl at a time, never longer than a few seconds
"""
