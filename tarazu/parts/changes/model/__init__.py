"""What tarazu changes on a running system: one noun, one seam, the same rules for all levers. Pure; reads no files.

change     a proposal: target, wanted, why, what it is expected to give, until when, who asked
lever      the seam: how one kind of thing is read, set and compared
held       what was there before a change, and what has been set since
ours       whose each part is now
goals      what no change may worsen, and what counts then, in the site's order
limits     so many at once, a minute, an hour; later and later tries
outcome    what it gave, beside what was promised
"""
