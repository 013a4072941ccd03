"""What tarazu remembers of your runs, and learns from: look at it, add to it, take it elsewhere, forget it.

tarazu history list                          your applications
tarazu history list ior                      the runs of one
tarazu history show ior                      what its newest run created
tarazu history import ~/darshan/*.darshan    learn from Darshan logs of earlier runs
tarazu history predict ior                   what its next run will write
tarazu history report --since 7d             which runs would have gained by placement
tarazu history export ior > ior.csv          for pandas, DuckDB, a spreadsheet
tarazu history forget ior --before 2026-01-01

`tarazu history VERB --help` says more.
"""
