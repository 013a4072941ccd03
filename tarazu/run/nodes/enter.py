"""`tarazu.trusted` for shells, on nodes without Python."""

from __future__ import annotations

ENTER = """\
umask 077; set -C
me=$(id -u)
look() { # PATH: what it is, a link too
    about=$(stat -c '%f %u %h' "$1" 2>/dev/null) || return 1
    mode=$((0x${about%% *})) names=${about##* } about=${about% *}; uid=${about#* }
}
ours() {
    [ "$uid" = 0 ] || [ "$uid" = "$me" ] ||
        { [ "$uid" = 65534 ] && [ -z "$shared" ] && ! grep -q 4294967295 /proc/self/uid_map; }
}
enter() { # DIRECTORY [make]: stands in it then. 1: it is not there; 2: others could change what lies there
    way=$1/ links=0 shared=
    case $way in /*) cd -P / && look . || return 1;; *) return 2;; esac
    while [ -n "$way" ]; do
        part=${way%%/*} way=${way#*/}
        case $part in ''|.) continue;; esac
        ours && { [ $((mode & 022)) = 0 ] || { shared=yes; [ $((mode & 01000)) != 0 ]; }; } || return 2
        look "./$part" || { [ -n "${2-}" ] && { mkdir "./$part" 2>/dev/null; look "./$part"; }; } || return 1
        ours || return 2
        case $((mode >> 12)) in
        4) cd -P "./$part" || return 1;;
        10) links=$((links + 1)); [ "$names" = 1 ] && [ -n "$way" ] && [ $links -le 8 ] || return 2
            part=$(readlink "./$part") && way=$part/$way || return 1
            case $part in /*) cd -P / || return 1;; esac
            look . || return 1;;
        *) return 2;;
        esac
    done
    [ "$uid" = "$me" ] && [ $((mode & 022)) = 0 ] || return 2
}
remove() { # DIRECTORY, if it is such a one
    enter "$1" && cd -P .. && rm -rf "./${1##*/}"
}
"""
"""Shell: goes into a directory that only root and this user can change; what is done there then by relative names leads
nowhere else. Nothing that is there is written over. Needs coreutils."""
