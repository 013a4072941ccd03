#!/bin/sh
# At a job's end, on each of its nodes: what tasks recorded by the task prolog goes from the node's memory to its user's
# own directory, where `tarazu history gather` finds it. With the site's settings in it:
#   tarazu history gather --print node_epilog > /etc/slurm/tarazu-epilog
#   Epilog=/etc/slurm/tarazu-epilog                  in slurm.conf
# Root looks for names in one directory, and at nothing of the user's: the rest is done as he, so that no link leads
# anywhere that he could not go himself, nor, in what others have made, anywhere at all. It always ends well, and soon, for a node whose Epilog fails or hangs is lost to all.
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
set -- "$spools"*
[ "$1" != "$spools*" ] || exit 0

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

state_dir=$(replaced "$(replaced "$state_dir" "{uid}" "$uid")" "%h" "$(uname -n)")

# Not waited for longer than that: what hangs in the kernel, on a server that is gone, cannot be killed.
timeout -k 1 "$seconds" env -i "PATH=$PATH" LC_ALL=C "$@" sh -s -- \
    "$spools" "slurm-$job-" "$state_dir/steps" "$node" "$most_kib" \
    "$kept_kib" "$kept_steps" "$kept_days" >/dev/null 2>&1 <<'AS_USER' &
spools=$1 job=$2 to=$3 node=$4 kept_kib=$6 kept_steps=$7 kept_days=$8 begun=
ulimit -f $(($5 * 2)) # blocks of 512 bytes
#ENTER
spools_of() { enter "$1" && set -- ./*.tzs && [ -e "$1" ] && emit "$@"; }
kib_of() { set -- "$(du -sk "$1")" && echo "${1%%[!0-9]*}"; }
# What nobody has gathered goes, the oldest first: by whoever begins the next step's directory, for all its nodes. That
# one stays; one of a time that has not come yet is as old as it; what a link leads to is not ours.
tidy() { # STEP
    find . -mindepth 1 -maxdepth 1 -type d -name "slurm-*" -newer "./$1" -exec touch {} +
    find . -mindepth 1 -maxdepth 1 -type d -name "slurm-*" -mtime "+$kept_days" -exec rm -rf {} +
    steps=1 kib=$(kib_of "./$1")
    ls -1td ./slurm-*/ | while read -r old; do
        old=${old%/}
        [ -L "$old" ] || [ "$old" = "./$1" ] && continue
        steps=$((steps + 1))
        [ "$steps" -gt "$kept_steps" ] || kib=$((kib + $(kib_of "$old")))
        [ "$steps" -le "$kept_steps" ] && [ "$kib" -le "$kept_kib" ] || rm -rf "$old"
    done
}
for d in "$spools/$job"* "$spools.$job"*; do
    name=$job${d##*"$job"}
    case $name in *[!a-z0-9-]*) continue ;; esac
    enter "$d" && cd -P .. && mv "./${d##*/}" "./${d##*/}.$$" || continue # nobody else takes it now
    mkdir -p "$to"
    mkdir "$to/$name" && begun=$name
    if cd -P "$to/$name" && [ -O . ] && rm -f "./$node.part" && [ "$(kib_of .)" -lt "$kept_kib" ]; then
        (spools_of "$d.$$") >"./$node.part" && [ -s "./$node.part" ] && mv "./$node.part" "./$node.tzs" ||
            rm -f "./$node.part"
    fi
    rmdir "$to/$name"
    remove "$d.$$"
done
[ -z "$begun" ] || { cd -P "$to" && [ -O . ] && [ -d "./$begun" ] && tidy "$begun"; }
AS_USER
worker=$!
n=0
while kill -0 "$worker" && [ "$n" -lt $(((seconds + 2) * 20)) ]; do
    sleep 0.05
    n=$((n + 1))
done 2>/dev/null
exit 0
