"""tarazu-burstd: traffic of compute nodes, whose jobs they ran, and which nodes Slurm should give a job."""
