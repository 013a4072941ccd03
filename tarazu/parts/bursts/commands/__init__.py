"""Spatial bursts: a few neighbouring compute nodes do most of the I/O, and meet on a few I/O nodes (LNet routers).

    tarazu change bursts report                 how bursty the site's I/O has been, beside two published machines
    tarazu change bursts remap --advise         what other mappings of nodes to routers would have given
    tarazu change bursts nodes                  which of Slurm's jobs would get other nodes, and why not the others

`tarazu change bursts VERB --help` says more; what it is about: docs/bursts.md.
"""
