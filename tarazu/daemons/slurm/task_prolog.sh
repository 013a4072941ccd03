#!/bin/sh
# Records steps that nobody started by `tarazu run`: opt-in of the site. With the site's settings in it:
#   tarazu history gather --print task_prolog > /etc/slurm/tarazu-task-prolog
#   TaskProlog=/etc/slurm/tarazu-task-prolog         in slurm.conf, beside Epilog (--print node_epilog)
# It says what the task's environment gets in addition, waits for nobody, and says nothing when in doubt.
# Nothing but the task has it: not the batch script, nor interactive shells, nor what the library knows as prologs.
#SETTINGS

[ -n "${library:-}" ] || exit 0
case ${TARAZU_DISABLE:-0} in 0) ;; *) exit 0 ;; esac
case ${SLURM_STEP_ID:-none} in *[!0-9]* | 42949672[89]?) exit 0 ;; esac # Slurm's own: batch, interactive
[ -z "${SLURM_PTY_PORT:-}" ] || exit 0                                  # a shell with a terminal
uid=${SLURM_JOB_UID:-$(id -u)}
job=${SLURM_JOB_ID:-none}
restart=${SLURM_RESTART_COUNT:-0}
nodes=${SLURM_STEP_NUM_NODES:-1}
case $uid$job$restart$nodes in *[!0-9]*) exit 0 ;; esac
[ -r "$library" ] || exit 0
[ -z "$stop_file" ] || [ ! -e "$stop_file" ] || exit 0

# Whether `tarazu run` leads the step: there the library has taken that out of a prolog's environment, which only the
# kernel still has as it was.
grep -qz '^TARAZU_STEP=' "/proc/$$/environ"
[ $? = 1 ] || exit 0

newline='
'
named() { # WORD LIST, each a line: is it one of them?
    [ -n "$1" ] || return 1
    case "$newline$2$newline" in *"$newline$1$newline"*) return 0 ;; esac
    return 1
}
user=${SLURM_JOB_USER:-}
! named "$uid" "$exclude_users" && ! named "$user" "$exclude_users" || exit 0
[ -z "$only_users$only_projects$only_partitions" ] ||
    named "$uid" "$only_users" || named "$user" "$only_users" ||
    named "${SLURM_JOB_ACCOUNT:-}" "$only_projects" || named "${SLURM_JOB_PARTITION:-}" "$only_partitions" || exit 0

case ${LD_PRELOAD:-} in *"$newline"* | */libtarazu.so*) exit 0 ;; esac
step=slurm-$job-$SLURM_STEP_ID-$restart-$nodes
case ${SLURM_ARRAY_JOB_ID:-none}${SLURM_ARRAY_TASK_ID:-none} in
*[!0-9]*) array= ;;
*) array=yes step=$step-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID ;;
esac
while :; do
    case $spool_dir in *"{uid}"*) spool_dir=${spool_dir%%"{uid}"*}$uid${spool_dir#*"{uid}"} ;; *) break ;; esac
done

give() { [ -z "$2" ] || printf 'export %s=%s\n' "$1" "$2"; }
give TARAZU_STEP "$step"
give TARAZU_MODE observe
give TARAZU_RECORD light
give TARAZU_SPOOL "$spool_dir/$step"
give TARAZU_STOP "$stop_file"
give TARAZU_INCLUDE "$include"
give TARAZU_EXCLUDE "$exclude"
give TARAZU_EXCLUDE_PROGRAMS "$exclude_programs"
give TARAZU_JOB "$job"
if [ -n "$array" ]; then
    give TARAZU_ARRAY_JOB "$SLURM_ARRAY_JOB_ID"
    give TARAZU_ARRAY_INDEX "$SLURM_ARRAY_TASK_ID"
fi
give LD_PRELOAD "$library${LD_PRELOAD:+:$LD_PRELOAD}" # last: without the lines before it the library does nothing
exit 0
