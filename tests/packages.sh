#!/bin/sh
# Installs what the tests use beyond Python's packages, when that is possible without asking: as root on
# Debian. Anywhere else it says what is missing; the tests that need it are skipped and say so too.
set -u
missing=""
need() { # need COMMAND PACKAGE
    PATH="$PATH:/usr/sbin" command -v "$1" >/dev/null || missing="$missing $2"
}
# Beside each other Open MPI stays the default of Debian's alternatives; the tests call each by its own name.
need mpirun.openmpi openmpi-bin
need mpicc.openmpi libopenmpi-dev
need mpiexec.hydra mpich
need mariadbd mariadb-server-core
need my_print_defaults mariadb-client-core
need slurmctld slurm-wlm
need slurmdbd slurmdbd
need munged munge
need lua5.1 lua5.1
ls /usr/lib/*/lua/5.1/socket/unix.so >/dev/null 2>&1 || missing="$missing lua-socket"
need strace strace
need fusermount3 fuse3
[ -e /usr/include/fuse3/fuse.h ] || missing="$missing libfuse3-dev"
need prometheus prometheus
need promtool prometheus
need ip iproute2
ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || missing="$missing libfaketime"
need valgrind valgrind
need gfortran gfortran
need g++ g++
ls /usr/lib/*/libjemalloc.so.2 >/dev/null 2>&1 || missing="$missing libjemalloc2"
need clang-format clang-format
need clang "clang libclang-rt-dev"
need bwrap bubblewrap
need setfacl acl
need rsync rsync
need parallel parallel
need musl-gcc musl-tools
[ -e /usr/share/lmod/lmod/libexec/lmod ] || missing="$missing lmod"
need tclsh tcl
need chromium-headless-shell chromium-headless-shell
need patchelf patchelf
need rpmbuild rpm
need mmdebstrap mmdebstrap
need systemd-nspawn systemd-container
need busybox busybox-static
need pgrep procps
need groff groff-base
"${PYTHON:-python3}" -c "import ensurepip" 2>/dev/null || missing="$missing python3-venv"
/usr/bin/python3 -c "import simgrid" 2>/dev/null || missing="$missing python3-simgrid"
# Debian lets only one of the two be installed: the other one's program is unpacked beside the system.
modules=/usr/local/lib/environment-modules
beside() {
    for there in /usr/lib/*/modulecmd.tcl "$modules"/usr/lib/*/modulecmd.tcl; do [ -e "$there" ] && return; done
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
    deb=$(mktemp -d) && (cd "$deb" && chmod 755 . && apt-get download -qq environment-modules >/dev/null 2>&1 &&
        dpkg -x ./environment-modules_*.deb "$modules") || echo "could not get environment-modules (its tests are skipped)"
    rm -rf "$deb"
}
[ -z "$missing" ] && { beside; exit 0; }
if [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] && command -v apt-get >/dev/null; then
    echo "== installing Debian packages for the tests:$missing"
    apt-get update -qq || echo "apt-get update failed; trying with the old lists"
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        echo "could not install:$missing (the tests that need them are skipped)"
    beside
else
    echo "not installed:$missing (the tests that need them are skipped; Debian: apt install$missing)"
fi
exit 0
