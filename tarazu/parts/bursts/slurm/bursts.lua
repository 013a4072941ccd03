-- tarazu: which nodes a job should get. Asks tarazu-burstd while a job is submitted, and is silent when in doubt.
--
-- What its user said of nodes always counts: such a job is not asked about. Nor does anything here fail or delay a
-- submission: every step is protected, all of them together have `answer_s`, and after a few failures the service is
-- left alone for a while. For Lua 5.1 to 5.4 with LuaSocket (Debian: lua-socket).

local tarazu = {
    socket = "/run/tarazu-burstd/socket",
    answer_s = 0.02,
    failures = 3, -- in a row; then the service is left alone
    rest_s = 30, -- for so long
}

local NO_VAL = 4294967294
local NO_VAL_16 = 65534
local SPREAD_JOB = 256 -- slurm.h: SLURM_BIT(8)
local MOST = 65536 -- bytes of an answer
local MOST_OF_NAME, MOST_OF_RANGE = 255, 32
-- Of a question; beyond, it would be refused, which counts as a failure.
local MOST_NODES, MOST_CHARACTERS, MOST_OF_QUESTION = 100000, 1024, 8192

local failed, rests_until = 0, 0
local libraries

local function unset(value)
    return value == nil or value == "" or value == 0 or value == false or value == NO_VAL or value == NO_VAL_16
end

-- Why a job is not asked about; nil for one that is.
local function left(job)
    for _, name in ipairs({ "req_nodes", "exc_nodes", "features", "prefer", "reservation", "array_inx", "clusters",
        "burst_buffer", "batch_features" }) do
        if not unset(job[name]) then return name end
    end
    if not unset(job.contiguous) then return "contiguous" end
    if not unset(job.req_switch) then return "switches" end
    if not unset(job.immediate) then return "immediate" end
    for _, name in ipairs({ "het_job_offset", "pack_job_offset" }) do
        local offset = job[name]
        if offset ~= nil and offset ~= NO_VAL then return "one of several jobs" end
    end
    if math.floor((tonumber(job.bitflags) or 0) / SPREAD_JOB) % 2 == 1 then return "spread-job" end
    local nodes = tonumber(job.min_nodes)
    if not nodes or nodes < 2 or nodes > MOST_NODES or nodes ~= tonumber(job.max_nodes) then
        return "its number of nodes"
    end
    for _, name in ipairs({ "name", "partition", "user_name" }) do
        if #tostring(job[name] or "") > MOST_CHARACTERS then return "a long " .. name end
    end
    return nil
end

-- Held, or to begin later, or after another.
local function waits(job)
    return job.priority == 0 or not unset(job.dependency) or (tonumber(job.begin_time) or 0) > os.time()
end

-- A string of JSON: each byte a character.
local function quoted(text)
    return '"' .. tostring(text or ""):gsub('[%c"\\\127-\255]', function(c)
        return string.format("\\u%04x", c:byte())
    end) .. '"'
end

local function question(job)
    return string.format(
        '{"ask":"job","v":1,"uid":%.0f,"user":%s,"name":%s,"nodes":%.0f,"partition":%s,"waits":%s}\n',
        job.user_id, quoted(job.user_name), quoted(job.name), tonumber(job.min_nodes), quoted(job.partition),
        tostring(waits(job)))
end

local function connect(limit)
    local unix = libraries.unix
    local connection = type(unix) == "table" and (unix.stream or unix.tcp)() or unix()
    connection:settimeout(math.max(0, limit - libraries.socket.gettime()), "t")
    return connection, connection:connect(tarazu.socket)
end

-- The line that was answered; raises otherwise.
local function ask(line, limit)
    local connection, connected, why = connect(limit)
    local whole, part
    if connected then
        connection:settimeout(math.max(0, limit - libraries.socket.gettime()), "t")
        connected, why = connection:send(line)
    end
    if connected then
        connection:settimeout(math.max(0, limit - libraries.socket.gettime()), "t")
        -- Of so many bytes at most: a limit of time alone does not end what always has more to say.
        whole, why, part = connection:receive(MOST)
    end
    connection:close()
    if whole then error("a long answer", 0) end
    if why ~= "closed" then error(why or "no answer", 0) end
    return (part or ""):match("^([^\n]*)\n$") or error("expected a line, found something else", 0)
end

-- A folded list such as n[001-004,7],m1 as ranges, by what is around their numbers, and how many nodes it names; raises
-- for anything else, and for what takes longer than `limit`. Not node by node: a partition may have thousands. Names
-- and numbers are short: matching long ones takes by the square of their length.
local function unfold(text, limit)
    local found, count = {}, 0
    local function add(before, first, last, behind)
        if libraries.socket.gettime() > limit then error("too long a list of nodes", 0) end
        local low, high, digits = tonumber(first), tonumber(last), #first
        if not low or not high or low > high then error("no range", 0) end
        count = count + high - low + 1
        -- By digits: n[100-128] is in n[001-128] and in n[1-128], n[01-09] in neither.
        repeat
            local upto = math.min(high, 10 ^ digits - 1)
            local key = before .. "\n" .. digits .. "\n" .. behind
            local its = found[key] or {}
            found[key] = its
            if its[#its] and its[#its][2] + 1 == low then
                its[#its][2] = upto
            else
                its[#its + 1] = { low, upto }
            end
            low, digits = upto + 1, digits + 1
        until upto == high
    end
    local at = 1
    while at <= #text do
        local _, last, before, ranges, behind = text:find("^([^,%[%]]*)%[([%d,%-]+)%]([^,%[%]]*),?", at)
        if before then
            if #before + #behind > MOST_OF_NAME then error("too long a name", 0) end
            for range in ranges:gmatch("[^,]+") do
                local low, high = range:match(#range <= MOST_OF_RANGE and "^(%d+)%-?(%d*)$" or "^$")
                if not low then error("no range", 0) end
                add(before, low, high ~= "" and high or low, behind)
            end
        else
            local name
            _, last, name = text:find("^([^,%[%]]+),?", at)
            if not name then error("no list of nodes", 0) end
            if #name > MOST_OF_NAME then error("too long a name", 0) end
            before, ranges, behind = name:match("^(.-)(%d+)(%D*)$")
            add(before or name, ranges or "1", ranges or "1", behind or "")
        end
        at = last + 1
    end
    return found, count
end

local function within(range, ranges)
    for _, each in ipairs(ranges or {}) do
        if each[1] <= range[1] and range[2] <= each[2] then return true end
    end
    return false
end

-- Whether all nodes are the partition's: others would have the job refused.
local function all_there(nodes, job, partitions, limit)
    if not partitions then return true end
    for name, partition in pairs(partitions) do
        local default = unset(job.partition) and not unset(partition.flag_default)
        if name == job.partition or default then
            local there = unfold(partition.nodes or "", limit)
            for key, ranges in pairs(nodes) do
                for _, range in ipairs(ranges) do
                    if libraries.socket.gettime() > limit then error("too long a list of nodes", 0) end
                    if not within(range, there[key]) then return false end
                end
            end
            return true
        end
    end
    return false
end

local function rest(now)
    failed = failed + 1
    if failed >= tarazu.failures then
        failed, rests_until = 0, now + tarazu.rest_s
    end
end

-- What to do about a job: its nodes (nil: nothing), what to say to its user (nil: nothing), and why not.
-- `partitions`: Slurm's, where they are known.
function tarazu.asked(job, partitions)
    local now = os.time()
    if now < rests_until and rests_until - now <= tarazu.rest_s then return nil, nil, "resting" end
    local fine, why = pcall(left, job)
    if not fine or why then return nil, nil, tostring(why) end
    local line
    fine, line = pcall(question, job)
    if not fine or #line > MOST_OF_QUESTION then return nil, nil, "a long question" end
    local nodes, say
    fine, why = pcall(function()
        libraries = libraries or { socket = require("socket"), unix = require("socket.unix") }
        local limit = libraries.socket.gettime() + tarazu.answer_s
        local answer = ask(line, limit)
        nodes, say = answer:match('^{"v":1,"nodes":"([%w%[%],%-_%.]*)","say":"([^"\\%c]*)"}$')
        if not nodes then error("expected an answer, found something else", 0) end
        if nodes ~= "" then
            local named, count = unfold(nodes, limit)
            if count ~= tonumber(job.min_nodes) then error("expected as many nodes as the job asks for", 0) end
            if not all_there(named, job, partitions, limit) then error("expected nodes of the partition", 0) end
        end
    end)
    if not fine then
        rest(now)
        return nil, nil, tostring(why)
    end
    failed, rests_until = 0, 0
    return nodes ~= "" and nodes or nil, say ~= "" and say or nil, nil
end

-- For slurm_job_submit(job, partitions, uid): never raises, changes nothing but req_nodes.
function tarazu.submit(job, partitions)
    pcall(function()
        local nodes, say, why = tarazu.asked(job, partitions)
        if nodes then job.req_nodes = nodes end
        if say then slurm.log_user("%s", say) end
        if why then slurm.log_debug("tarazu: left alone: %s", why) end
    end)
end
