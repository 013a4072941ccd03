"""How bursty in space I/O is: of distributions (`measures`), intervals, jobs, applications, and of whole days."""
