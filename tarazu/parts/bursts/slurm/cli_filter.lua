
-- Set, of an option as the cli_filter has it.
local function given(value)
    if value == nil or value == "unset" or value == "" or value == "0" or value == "Unknown" then return nil end
    return value
end

function slurm_cli_setup_defaults(options, early)
    return slurm.SUCCESS
end

-- Only sbatch: what srun and salloc start inherits what LuaSocket does with SIGPIPE.
function slurm_cli_pre_submit(options, offset)
    pcall(function()
        if options["type"] ~= "sbatch" or offset ~= 0 then return end
        local script = options.argv and options.argv[1] or ""
        local later = given(options["hold"]) or given(options["begin"]) or given(options["dependency"])
        local nodes, say = tarazu.asked({
            name = given(options["job-name"]) or (given(options["wrap"]) and "wrap") or script:match("[^/]*$"),
            partition = given(options["partition"]),
            min_nodes = options["nodes"],
            max_nodes = options["nodes"],
            priority = later and 0 or nil,
            req_nodes = given(options["nodelist"]) or given(options["nodefile"]),
            exc_nodes = given(options["exclude"]),
            features = given(options["constraint"]),
            prefer = given(options["prefer"]),
            reservation = given(options["reservation"]),
            array_inx = given(options["array"]),
            clusters = given(options["clusters"]),
            burst_buffer = given(options["bb"]) or given(options["bbf"]),
            batch_features = given(options["batch"]),
            contiguous = given(options["contiguous"]),
            req_switch = given(options["switches"]),
            immediate = given(options["immediate"]),
            bitflags = given(options["spread-job"]) and 256 or 0,
        })
        if nodes then options["nodelist"] = nodes end
        if say then slurm.log_info("%s", say) end
    end)
    return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
    return slurm.SUCCESS
end

return slurm.SUCCESS
