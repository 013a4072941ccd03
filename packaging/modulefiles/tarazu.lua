-- For Lmod, as PREFIX/share/modulefiles/tarazu/VERSION.lua: the prefix is found from where this file lies.
--
-- It makes the commands and their manual pages known and nothing else. Above all it preloads nothing: only `tarazu run`
-- does, in the program that it starts.
local prefix = myFileName():gsub("/share/modulefiles/[^/]+/[^/]+$", "")

whatis("Name: tarazu")
whatis("Version: " .. myModuleVersion())
whatis("Description: balances I/O on Lustre, from the application's open() to the disk")
whatis("Category: tools, I/O")
help([[
tarazu has the files of a job created on the Lustre OSTs where the whole system stays balanced. Put it before what
starts the parallel program, once, in the batch script:

    tarazu run -- srun ./app
    tarazu run --mode place -- srun ./app

`man tarazu-run` and `tarazu --help` say more. For one job without it: export TARAZU_DISABLE=1]])

-- What the system has anyway must not come before what other modules have put there. Where MANPATH is not set, man looks
-- beside each directory of PATH; set to this one alone it would look nowhere else.
if prefix ~= "/usr" then
    prepend_path("PATH", pathJoin(prefix, "bin"))
    if (os.getenv("MANPATH") or "") ~= "" then
        prepend_path("MANPATH", pathJoin(prefix, "share/man"))
    end
end
