#!/bin/sh
# Hands a job's end to tarazu-burstd, where there is no accounting that it could ask. In slurm.conf:
#   JobCompType=jobcomp/script
#   JobCompLoc=/usr/local/libexec/tarazu-job-end
# It appends a line to a file and ends: nothing waits for the daemon, and a job's end for nothing.
list=${TARAZU_ENDED:-/var/lib/tarazu-burstd/ended}/list

# Where nobody takes the lines away, they do not fill the disk.
size=$(stat -c %s "$list" 2>/dev/null)
[ "${size:-0}" -lt 67108864 ] || exit 0

# A name is its user's own text: it ends no column and no line.
name=$(printf %s "$JOBNAME" | tr '|\n\r' '   ')
printf '%s|%s|%s|%s|%s|%s|%s|%s|%s\n' "$JOBID" "$USERNAME" "$NODES" "$SUBMIT" "$START" "$END" "$JOBSTATE" \
    "$PARTITION" "$name" >>"$list" 2>/dev/null
exit 0
