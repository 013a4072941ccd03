"""What becomes of one job of the batch system, one file, one program, and why.

tarazu job show 4711                         running or ended: steps, plans, promises, files, routers
tarazu job show 20261122T1830                a run, as `tarazu status` and jobs.log name it, or the first part of that
tarazu job explain /mnt/lustre/ior/test.0    why a file lies where it lies: its forecast, plan, actual layout
tarazu job check-app ./ior                   what of a program the placement library would not see

`tarazu job VERB --help` says more.
"""
