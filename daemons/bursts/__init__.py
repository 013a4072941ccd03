"""tarazu-burstd: keeps the traffic of compute nodes and whose jobs they ran; tells Slurm which nodes a job should get."""
