-- Puts jobs of these partitions on hold, from which `batwatt slurm run --operate` takes them over.
-- Copy it beside slurm.conf, and set JobSubmitPlugins=lua there.
local HANDED_OVER = { green = true }

local function partition_of(job_desc, part_list)
   if job_desc.partition ~= nil and job_desc.partition ~= "" then
      return job_desc.partition
   end
   for name, partition in pairs(part_list) do
      if partition.flag_default == 1 then
         return name
      end
   end
   return nil
end

function slurm_job_submit(job_desc, part_list, submit_uid)
   local partition = partition_of(job_desc, part_list)
   -- a list of several partitions is none of the names: batwatt does not take such a job over
   if partition ~= nil and HANDED_OVER[partition] then
      job_desc.priority = 0
      slurm.log_user("partition " .. partition .. ": the job is on hold until the power scheduler starts it")
   end
   return slurm.SUCCESS
end

-- Slurm requires it; batwatt's own changes pass here, too
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
