"""Which compute nodes a job gets, so that more I/O nodes serve it (spatially-bursty-io, 6.4)."""
