"""What the batch system says of jobs and nodes; what is asked of Slurm is asked here.

environment   the job whose environment this is: Slurm's, PBS's, LSF's variables
slurm         Slurm's programs: questions, and changes of a job that waits
jobs          jobs as they are printed: who ran where and when
nodes         nodes as they are printed: partitions, what is idle, leaf switches
node_set      lists of nodes as text, `n[001-004,7],login1`
"""
