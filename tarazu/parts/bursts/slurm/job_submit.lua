
function slurm_job_submit(job, partitions, uid)
    tarazu.submit(job, partitions)
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
