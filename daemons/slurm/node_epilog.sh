#!/bin/sh
# At a job's end, on each of its nodes: what tasks recorded by the task prolog goes from the node's memory to its user's
# own directory, where `tarazu history gather` finds it. With the site's settings in it:
#   tarazu history gather --print node_epilog > /etc/slurm/tarazu-epilog
#   Epilog=/etc/slurm/tarazu-epilog                  in slurm.conf
# Root looks at one directory, and at no file of the user's: the rest is done as he, so that no link leads anywhere that
# he could not go himself. It always ends well, and soon, for a node whose Epilog fails or hangs is lost to all.
#SETTINGS

[ -n "${spool_dir:-}" ] || exit 0
PATH=/usr/sbin:/usr/bin:/sbin:/bin
uid=${SLURM_JOB_UID:-none}
job=${SLURM_JOB_ID:-none}
case $uid$job in *[!0-9]*) exit 0 ;; esac
node=${SLURMD_NODENAME:-$(uname -n)}
case $node in '' | *[!A-Za-z0-9._-]*) exit 0 ;; esac
replaced() { # TEXT FROM TO
    rest=$1 text=
    while :; do
        case $rest in *"$2"*) text=$text${rest%%"$2"*}$3 rest=${rest#*"$2"} ;; *) break ;; esac
    done
    printf %s "$text$rest"
}
spools=$(replaced "$(replaced "$spool_dir" "{uid}" "$uid")" "%h" "$(uname -n)")
[ -d "$spools" ] && [ ! -L "$spools" ] || exit 0

me=$(id -u)
set --
if [ "$me" != "$uid" ]; then
    [ "$me" = 0 ] || exit 0
    entry=$(timeout 2 getent passwd "$uid" </dev/null) || exit 0
    gid=$(printf %s "$entry" | cut -d: -f4)
    case $gid in '' | *[!0-9]*) exit 0 ;; esac
    set -- setpriv "--reuid=$uid" "--regid=$gid" --init-groups --no-new-privs --
fi
case $state_dir in
"~/"*)
    home=$(timeout 2 getent passwd "$uid" </dev/null | cut -d: -f6)
    [ -n "$home" ] || exit 0
    state_dir=$home/${state_dir#"~/"}
    ;;
esac

# Not waited for longer than that: what hangs in the kernel, on a server that is gone, cannot be killed.
timeout -k 1 "$seconds" env -i "PATH=$PATH" LC_ALL=C "$@" sh -s -- \
    "$uid" "$spools" "slurm-$job-" "$state_dir/steps" "$node" "$most_kib" >/dev/null 2>&1 <<'AS_USER' &
uid=$1 spools=$2 job=$3 to=$4 node=$5
cd / && umask 077
ulimit -f $(($6 * 2)) # blocks of 512 bytes
ours() { [ -n "$(find "$1" -prune -type d -user "$uid" ! -perm /022)" ]; }
#EMIT
ours "$spools" || exit
for d in "$spools/$job"*; do
    name=${d##*/}
    case $name in *[!a-z0-9-]*) continue ;; esac
    ours "$d" && mv "$d" "$d.$$" || continue # nobody else takes it now
    set -- "$d.$$"/*.tzs
    if [ -e "$1" ] && mkdir -p "$to/$name"; then
        emit "$@" >"$to/$name/$node.part" && mv "$to/$name/$node.part" "$to/$name/$node.tzs" ||
            rm -f "$to/$name/$node.part"
    fi
    rm -rf "$d.$$"
done
AS_USER
worker=$!
n=0
while kill -0 "$worker" && [ "$n" -lt $(((seconds + 2) * 20)) ]; do
    sleep 0.05
    n=$((n + 1))
done 2>/dev/null
exit 0
