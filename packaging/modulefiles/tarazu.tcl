#%Module1.0
# For environment-modules, as PREFIX/share/modulefiles/tarazu/VERSION: the prefix is found from where this file lies.
#
# It makes the commands and their manual pages known and nothing else. Above all it preloads nothing: only `tarazu run`
# does, in the program that it starts.
set file [file normalize $ModulesCurrentModulefile]
set version [file tail $file]
regsub {/share/modulefiles/[^/]+/[^/]+$} $file {} prefix

module-whatis "Name: tarazu"
module-whatis "Version: $version"
module-whatis "Description: balances I/O on Lustre, from the application's open() to the disk"

proc ModulesHelp {} {
    puts stderr {
tarazu has the files of a job created on the Lustre OSTs where the whole system stays balanced. Put it before what
starts the parallel program, once, in the batch script:

    tarazu run -- srun ./app
    tarazu run --mode place -- srun ./app

`man tarazu-run` and `tarazu --help` say more. For one job without it: export TARAZU_DISABLE=1}
}

conflict tarazu

# What the system has anyway must not come before what other modules have put there. Where MANPATH is not set, man looks
# beside each directory of PATH; set to this one alone it would look nowhere else.
if {$prefix ne "/usr"} {
    prepend-path PATH $prefix/bin
    if {[info exists env(MANPATH)] && $env(MANPATH) ne ""} {
        prepend-path MANPATH $prefix/share/man
    }
}
