"""How many and which I/O resources (LNet routers, OSTs) applications get: what policies make of them.

tarazu sim forward allocate --example > jobs.toml     a file of resources and jobs to begin with
tarazu sim forward allocate jobs.toml                 what each policy would do with them
tarazu sim forward study --out my-study               policies over many sets of applications: figures, claims

`tarazu sim forward VERB --help` says more.
"""
