"""Options of programs that start other programs: which have a value, which speak of ranks, nodes and hosts.

From the manuals: srun(1) of Slurm 22.05 to 24.11, mpirun(1) of Open MPI 4 and 5 (prterun), MPICH's and Intel MPI's
mpiexec.hydra, Cray's aprun(1) and PALS mpiexec, IBM's jsrun(1), flux-run(1), TACC's ibrun, CEA's ccc_mprun, and those
of the tools that stand between a launcher and its program.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath

import msgspec


class LauncherSyntax(msgspec.Struct, frozen=True):
    """How one launcher reads its command line. Names of options are without their dashes."""

    values: Mapping[str, int] = {}
    """Option → how many words follow as its value."""
    flags: frozenset[str] = frozenset()
    """Options without a value, or with one only in the same word (`--exclusive=user`)."""
    words: bool = False
    """Long options may have a single dash (`-np 4`); else it is getopt's way (`-n4`, `-vn 4`)."""
    parallel: bool = False
    """It starts ranks."""
    one_a_node: bool = False
    """So many ranks where nobody says a number; else one for each task that the allocation has room for."""
    colon: bool = False
    """Several programs, with `:` between them."""
    assignments: bool = False
    """`NAME=value` before the program."""
    operands: int = 0
    """Words before the program (a mask, a duration, an image)."""
    subcommands: Mapping[str, int] | None = None
    """First operand → words between it and the program; any other starts no program."""
    ranks: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    per_node: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    """Options that choose the hosts."""
    reach: frozenset[str] = frozenset()
    """Options without which these hosts are not reached."""

    def known(self, name: str) -> str:
        """The option's full name: getopt takes any beginning that no other shares. Empty: there is none."""
        if name in self.values or name in self.flags:
            return name
        if self.words or len(name) < 2:
            return ""
        options = [option for option in (*self.values, *self.flags) if option.startswith(name)]
        return options[0] if len(options) == 1 else ""


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _dialect(
    values: str = "", flags: str = "", twice: str = "", **others: object
) -> Callable[[], LauncherSyntax]:
    """What makes it: a command line needs one or two of them all, and to make all takes longer than to read it."""

    @functools.cache
    def make() -> LauncherSyntax:
        counts = dict.fromkeys(values.split(), 1) | dict.fromkeys(twice.split(), 2)
        fields = {k: _set(v) if isinstance(v, str) else v for k, v in others.items()}
        return LauncherSyntax(values=counts, flags=_set(flags), **fields)  # type: ignore[arg-type]

    return make


MPI = _dialect(
    # Open MPI 4 and 5, hydra, Intel MPI and PALS share the names of their programs, and hardly an option that
    # means two things.
    values="""
    gtool forward-signals exec-agent with-ft c n np H host hosts hostfile hostlist default-hostfile machinefile
    machine machines f N npernode npersocket ppn perhost grr rr map-by rank-by bind-to membind mapby rankby
    bindto x am app cf cartofile cpu-list cpu-set cpus-per-proc cpus-per-rank debugger hnp dvm-uri launch-agent
    max-restarts max-vm-size ompi-server output-filename output path personality ppr prefix preload-files
    report-events report-pid report-uri rf rankfile stdin timeout wd wdir xml-file xterm add-host add-hostfile
    display runtime-options rtos pset gpu-support stream-buffering num-connect-retries set-sid soft arch file
    genvlist envlist genvexcl configfile launcher launcher-exec bootstrap bootstrap-exec rmk topolib demux iface
    prepend-pattern outfile-pattern errfile-pattern outfile errfile nameserver localhost usize gpus-per-proc
    branch-count pmi-connect tmpdir umask depth cpu-bind mem-bind gpu-bind label-width env-exclude cwd
    path-prefix line-buffer-size exclude-hosts memory-alloc-kinds initial-errhandler output-directory host-file
    cpu-freq
    """,
    twice="mca gmca omca prtemca pmixmca gprtemca gpmixmca genv env",
    flags="""
    ilp64 allow-run-as-root bind-to-core bind-to-socket bind-to-none bycore bynode byslot continuous debug-devel
    debug debug-daemons debug-daemons-file disable-recovery display-allocation display-devel-allocation
    display-devel-map display-diffable-map display-map display-topo do-not-launch do-not-resolve dvm
    enable-instant-on-support enable-recovery fwd-mpirun-port get-stack-traces h help index-argv-by-rank
    leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm output-proctable
    oversubscribe pernode preload-binary q quiet report-bindings report-child-jobs-separately
    report-state-on-timeout set-cwd-to-session-dir show-progress tag-output timestamp-output tv
    use-hwthread-cpus use-regexp v verbose V version xml fwd-environment report-child-separately
    abort-on-non-zero-status do-not-aggregate genvnone genvall envnone envall info print-all-exitcodes enable-x
    disable-x profile prepend-rank disable-auto-cleanup disable-hostname-propagation enable-hostname-propagation
    enable-auto-cleanup order-nodes pmi-port skip-launch-node l t trace check_mpi gdb gdba print-rank-map
    tune-mode noconf ordered-output nocleanup label line-buffer no-transfer transfer no-vni no-pmi
    abort-on-failure exclusive
    """,
    words=True,
    parallel=True,
    colon=True,
    ranks="c n np",
    per_node="N npernode ppn perhost grr",
    hosts="""
    H host hosts hostfile hostlist default-hostfile machinefile machine machines f add-host add-hostfile
    host-file rf rankfile
    """,
    reach="""
    allow-run-as-root prefix noprefix launch-agent launcher launcher-exec bootstrap bootstrap-exec rmk iface mca
    prtemca disable-hostname-propagation localhost
    """,
)

_DIALECTS: dict[str, Callable[[], LauncherSyntax]] = {
    "srun yhrun": _dialect(
        values="""
        A account accel-bind acctg-freq bb bbf bcast-exclude b begin D chdir cluster-constraint M clusters comment C
        constraint container container-id S core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu c
        cpus-per-task deadline delay-boot d dependency m distribution epilog e error x exclude export export-file B
        extra extra-node-info gid gpu-bind gpu-freq G gpus gpus-per-node gpus-per-socket gpus-per-task gres
        gres-flags het-group pack-group hint i input J job-name jobid L licenses mail-type mail-user mcs-label mem
        mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network F nodefile w nodelist N nodes n ntasks
        ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode o output p
        partition power prefer priority profile prolog q qos r relative reservation signal slurmd-debug
        sockets-per-node switches task-epilog task-prolog tasks-per-node thread-spec T threads threads-per-core t
        time time-min tmp tres-bind tres-per-task tres-per-node uid W wait wckey
        container-image container-mounts container-workdir container-name container-env P
        """,
        flags="""
        bcast compress contiguous X disable-status exact exclusive h help H hold I immediate K kill-on-bad-exit l
        label multi-prog nice Z no-allocate k no-kill O overcommit overlap s oversubscribe share E preserve-env
        propagate pty Q quiet quit-on-interrupt reboot resv-ports send-libs spread-job stepmgr test-only u
        unbuffered usage use-min-nodes v verbose V version whole x11 container-mount-home container-remap-root
        container-writable
        """,
        parallel=True,
        one_a_node=True,
        colon=True,
        ranks="n ntasks",
        nodes="N nodes",
        per_node="ntasks-per-node tasks-per-node",
        hosts="w nodelist x exclude F nodefile r relative",
        reach="jobid het-group pack-group M clusters",
    ),
    "mpirun mpiexec orterun prterun prun oshrun shmemrun": MPI,
    "mpiexecjl": functools.cache(
        lambda: msgspec.structs.replace(MPI(), values={**MPI().values, "project": 1})
    ),
    "horovodrun": _dialect(
        values="""
        np num-proc H hosts hostfile p ssh-port i ssh-identity-file network-interfaces network-interface
        start-timeout output-filename config-file fusion-threshold-mb cycle-time-ms min-np max-np
        """,
        flags="verbose disable-cache mpi gloo jsrun check-build v version",
        words=True,
        parallel=True,
        ranks="np num-proc",
        hosts="H hosts hostfile",
    ),
    "omplace": _dialect(values="b c nt tm ht", flags="v vv s", words=True),
    "dplace": _dialect(values="c s n x p", flags="e o v q r"),
    "jsrun": _dialect(
        values="""
        n nrs a tasks_per_rs c cpu_per_rs g gpu_per_rs r rs_per_host K rs_per_socket p np b bind d
        launch_distribution l latency_priority m memory_per_rs M smpiargs E env D env_eval F env_no_propagate h
        chdir A appfile f U erf_input J erf_output o stdio_stdout e stdio_stderr t stdio_input k stdio_mode P
        pre_post_exec L use_resources N nodes w wait
        """,
        flags="""
        i immediate X exit_on_error x exclude_hosts S save_resources u use_spindle v V version Q q progress help
        """,
        parallel=True,
        colon=True,
        ranks="p np",
    ),
    "aprun": _dialect(
        values="""
        n pes N pes-per-node d cpus-per-pe depth S pes-per-numa-node sn numa-nodes-per-node sl numa-node-list cc
        cpu-binding cp cpu-binding-file L node-list l node-list-file m memory-per-pe j cpus-per-cu r
        specialized-cpus t cpu-time-limit e environment-override E a architecture C reconnect D debug F access-mode
        p protection-domain P pipes R relaunch A
        """,
        flags="""
        ss strict-memory-containment q quiet b bypass-app-transfer B batch-args T sync-output z zone-sort zs
        mpmd-env h help V version u v i
        """,
        words=True,
        parallel=True,
        colon=True,
        ranks="n pes",
        per_node="N pes-per-node",
        hosts="L node-list l node-list-file",
    ),
    "flux": _dialect(
        values="""
        N nodes n ntasks tasks-per-node tasks-per-core cores gpus-per-node c cores-per-task g gpus-per-task t
        time-limit q queue B bank o setopt S setattr env env-remove env-file rlimit input output error job-name cwd
        requires dependency begin-time signal urgency cc bcc log log-stderr taskmap conf add-file jps job-cores
        wait-event progress-type shell-options uri size s wrap d k broker-opts test-size nslots cores-per-slot
        gpus-per-slot define
        """,
        flags="""
        exclusive x unbuffered u label-io l dry-run debug debug-emulate verbose v quiet Q wait watch progress bg
        parent p help h flags
        """,
        parallel=True,
        ranks="n ntasks",
        nodes="N nodes",
        per_node="tasks-per-node",
        hosts="requires",
        subcommands={"run": 0, "submit": 0, "bulksubmit": 0, "alloc": 0, "batch": 0, "start": 0, "proxy": 1},
    ),
    "ibrun": _dialect(
        values="n np o ppn", flags="h help d v", words=True, parallel=True, ranks="n np", per_node="ppn"
    ),
    "ccc_mprun": _dialect(
        values="n c N p T A M m E d q Q B C e f L G S W",
        flags="x D h K l r v a exclusive",
        parallel=True,
        ranks="n",
        nodes="N",
    ),
    "mpirun_rsh": _dialect(
        values="n np hostfile config dpmspawn gdb-file env-file",
        flags="rsh ssh show legacy debug tv xterm export export-all sg dbg",
        words=True,
        parallel=True,
        assignments=True,
        ranks="n np",
        hosts="hostfile",
    ),
    "lrun": _dialect(values="n N T m", words=True, parallel=True, ranks="n", nodes="N", per_node="T"),
    "likwid-mpirun": _dialect(
        values="n np nperdomain pin g group m o s omp mpi hostfile d dist mpiopts",
        flags="h help v version debug i skip ld no-pin stats",
        words=True,
        parallel=True,
        ranks="n np",
        hosts="hostfile",
    ),
    "env": _dialect(
        values="u unset C chdir S split-string a argv0",
        flags="""
        i ignore-environment 0 null v debug block-signal default-signal ignore-signal list-signal-handling
        """,
        assignments=True,
    ),
    "nice": _dialect(values="n adjustment", flags="0 1 2 3 4 5 6 7 8 9"),
    "nohup": _dialect(),
    "setsid": _dialect(flags="c ctty f fork w wait"),
    "time": _dialect(values="f format o output", flags="a append p portability q quiet v verbose"),
    "timeout": _dialect(
        values="k kill-after s signal", flags="preserve-status foreground v verbose p f", operands=1
    ),
    "stdbuf": _dialect(values="i input o output e error"),
    "ionice": _dialect(values="c class n classdata p pid P pgid u uid", flags="t ignore"),
    "taskset": _dialect(flags="a all-tasks c cpu-list", operands=1),
    "chrt": _dialect(
        values="T sched-runtime P sched-period D sched-deadline",
        flags="b batch d deadline f fifo i idle o other r rr R reset-on-fork v verbose a all-tasks",
        operands=1,
    ),
    "numactl": _dialect(
        values="""
        i interleave N cpunodebind C physcpubind m membind p preferred P preferred-many w weighted-interleave L
        length o offset S shm f file M shmmode shmid
        """,
        flags="t strict l localalloc a all s show H hardware b balancing d dump h huge T touch u",
    ),
    "prlimit": _dialect(values="p pid o output", flags="noheadings raw verbose"),
    "hwloc-bind": _dialect(
        values="cpubind-set membind-set mempolicy restrict",
        flags="strict l p v q single",
        words=True,
        operands=1,
    ),
    "likwid-pin": _dialect(values="c C s d V", flags="S L q i p m v"),
    "unbuffer": _dialect(flags="p"),
    "catchsegv tacc_affinity task_affinity": _dialect(),
    "chpst sudo": _dialect(
        values="u user g group U p C T D R h host r role t type", flags="E n H b k S A i s preserve-env"
    ),
    "strace": _dialect(
        values="""
        o output e expr trace s string-limit u user p attach E env a columns P trace-path I interruptible b
        detach-on O X S summary-sort-by U
        """,
        flags="""
        f follow-forks ff F i instruction-pointer k stack-traces q quiet r relative-timestamps t tt ttt T C
        summary c summary-only v x xx y yy z Z d D DD DDD n w A Y absolute-timestamps output-append-mode
        decode-fds seccomp-bpf
        """,
    ),
    "ltrace": _dialect(
        values="o output e l library n indent p s u x a align A D debug F config w where",
        flags="f S c C demangle i L no-signals r t tt ttt T b",
    ),
    "valgrind": _dialect(flags="v q d h verbose quiet"),
    "gdb cuda-gdb": _dialect(
        values="""
        ex eval-command x command ix init-command iex init-eval-command d directory s symbols se e exec c core p
        pid cd D data-directory tty interpreter l b
        """,
        flags="args batch q quiet silent nx n nh readnow nw w tui batch-silent return-child-result",
        words=True,
    ),
    "perf": _dialect(
        values="""
        e event F freq c count o output C cpu G cgroup p pid t tid g-graph m mmap-pages call-graph filter r repeat x
        field-separator I interval-print delay D j branch-filter
        """,
        flags="""
        g a all-cpus d detailed n null v verbose q quiet B big-num T timestamp i no-inherit A no-aggr S sync
        per-core per-socket s summary b
        """,
        subcommands={"record": 0, "stat": 0, "trace": 0, "mem": 0},
    ),
    "nsys": _dialect(
        values="""
        o output t trace s sample c capture-range y delay d duration w show-output e env-var n gpu-metrics-device
        stats cuda-memory-usage mpi-impl f force-overwrite x stop-on-exit kill b backtrace
        """,
        flags="help h version v",
        subcommands={"profile": 0, "launch": 0, "nvprof": 0},
    ),
    "ncu": _dialect(
        values="""
        o export k kernel-name c launch-count s launch-skip set section metrics target-processes replay-mode
        nvtx-include page
        """,
        flags="f force-overwrite nvtx",
    ),
    "rocprof rocprofv3": _dialect(
        values="i o d t m input output output-dir",
        flags="stats hip-trace hsa-trace sys-trace timestamp kernel-trace",
        words=True,
    ),
    "vtune": _dialect(
        values="collect c knob k result-dir r duration d search-dir app-working-dir data-limit finalization-mode",
        flags="quiet q verbose v trace-mpi start-paused",
        words=True,
    ),
    "tau_exec": _dialect(values="T loadlib env", flags="io memory ebs ompt cupti v", words=True),
    "scalasca": _dialect(values="e f m", flags="n q s t a i v analyze"),
    "heaptrack": _dialect(values="o output p pid", flags="d r raw q a"),
    "apptainer singularity": _dialect(
        values="""
        no-mount B bind mount H home W workdir S scratch o overlay add-caps drop-caps env env-file pwd cwd app
        apply-cgroups blkio-weight cpu-shares cpus cpuset-cpus cpuset-mems device dns fakeroot-path hostname memory
        memory-reservation memory-swap pids-limit network network-args security fusemount pem-path docker-host
        """,
        flags="""
        nv nvccli rocm C containall c contain e cleanenv w writable writable-tmpfs p pid i ipc n net u userns uts f
        fakeroot no-home no-init no-umask no-eval no-privs keep-privs allow-setuid compat disable-cache vm
        passphrase d debug q quiet s silent v verbose nocolor unsquash underlay
        """,
        subcommands={"exec": 1, "run": 0},
    ),
    "ch-run": _dialect(
        values="b bind c cd g gid u uid set-env unset-env join-ct join-pid home",
        flags="w write W write-fake j join t private-tmp no-home no-passwd v verbose",
        operands=1,
    ),
    "shifter": _dialect(
        values="i image V volume e env m module w workdir E env-file", flags="clearenv v verbose"
    ),
    "sarus podman-hpc": _dialect(
        values="mount m workdir w e env annotation device entrypoint v volume ulimit name network",
        flags="mpi glibc ssh t tty centralized-repository init rm it i gpu mpich nccl openmpi-pmi2",
        subcommands={"run": 1},
    ),
    "conda mamba micromamba": _dialect(
        values="n name p prefix cwd r root-prefix e env",
        flags="v verbose no-capture-output live-stream dev debug-wrapper-scripts clean-env",
        subcommands={"run": 0},
    ),
    "uv": _dialect(
        values="""
        with with-editable with-requirements p python project directory extra no-extra group no-group only-group
        env-file package config-file cache-dir index index-url i default-index extra-index-url f find-links P
        upgrade-package refresh-package resolution prerelease link-mode
        """,
        flags="""
        m module isolated active no-sync locked frozen no-project no-env-file exact all-extras dev no-dev offline
        q quiet v verbose n no-cache no-config s script gui-script U upgrade managed-python native-tls
        """,
        subcommands={"run": 0},
    ),
    "poetry pixi pipenv": _dialect(
        values="C directory P project e environment manifest-path",
        flags="q v no-interaction n frozen locked",
        subcommands={"run": 0},
    ),
}

DIALECTS: Mapping[str, Callable[[], LauncherSyntax]] = {
    name: make for names, make in _DIALECTS.items() for name in names.split()
}

_VERSIONED = r"(mpirun|mpiexec|orterun|prterun)[._-][\w.+-]+$"


def dialect(command: str) -> LauncherSyntax | None:
    """How a program reads its command line; None for one that starts no other.

    `mpiexec.hydra` and `mpirun.openmpi` read it as `mpiexec` and `mpirun` do. What is typed with a relative path is the
    user's own program, whatever its name (`./time`), but for what starts ranks.
    """
    name = PurePath(command).name
    make = DIALECTS.get(name)
    if make is None:
        versioned = name.startswith(("mpi", "orte", "prte")) and re.match(_VERSIONED, name)
        make = DIALECTS.get(versioned.group(1)) if versioned else None
        return make() if make else None
    syntax = make()
    if not syntax.parallel and "/" in command and not command.startswith("/"):
        return None
    return syntax
