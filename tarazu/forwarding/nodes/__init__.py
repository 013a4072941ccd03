"""Which compute nodes a job gets, so that its I/O takes more I/O nodes, more evenly."""
