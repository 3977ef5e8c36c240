package launch

import (
	"cmp"
	"fmt"
	"strconv"
)

const insideSlurm = "run this inside srun, or as the tasks of a job array"

// Slurm returns the place of a task of srun or, outside of a step, of a job array. It fails in a batch script, which
// Slurm runs once.
//
// Source: the environment variables that srun(1) and sbatch(1) of Slurm 22.05 list.
func Slurm(env func(string) string) (Place, error) {
	switch {
	case env("SLURM_STEP_ID") != "":
		return slurmStep(env)
	case env("SLURM_ARRAY_JOB_ID") != "":
		return slurmArray(env)
	case env("SLURM_PROCID") == "":
		return Place{}, fmt.Errorf("SLURM_PROCID is not set: %s", insideSlurm)
	}
	return Place{}, fmt.Errorf("SLURM_STEP_ID is not set, so that this is the batch script, which runs once: %s",
		insideSlurm)
}

func slurmStep(env func(string) string) (p Place, err error) {
	if p.Size, err = number(env, "SLURM_STEP_NUM_TASKS", insideSlurm, 1, MaxSize); err != nil {
		return p, err
	}
	if p.Rank, err = number(env, "SLURM_PROCID", insideSlurm, 0, p.Size-1); err != nil {
		return p, err
	}
	if p.Local, err = local(env, "SLURM_LOCALID", insideSlurm); err != nil {
		return p, err
	}
	nodes, err := Nodes(cmp.Or(env("SLURM_STEP_NODELIST"), env("SLURM_JOB_NODELIST")))
	if err != nil {
		return p, fmt.Errorf("SLURM_STEP_NODELIST: %w", err)
	}
	p.Leader, p.End = nodes[0], slurmEnd(env)
	p.Folder = env("SLURM_SUBMIT_DIR")
	// A requeued job keeps its number: the restart count tells its files from those of the previous start.
	p.Job = plain("slurm-" + env("SLURM_JOB_ID") + "." + env("SLURM_STEP_ID"))
	p.Run = p.Job + "." + plain(cmp.Or(env("SLURM_RESTART_COUNT"), "0"))
	return p, nil
}

// slurmArray numbers the tasks of a job array from 0. Each is a separate job that starts at any time, so that the host
// of rank 0 is unknown.
func slurmArray(env func(string) string) (p Place, err error) {
	if p.Size, err = number(env, "SLURM_ARRAY_TASK_COUNT", insideSlurm, 1, MaxSize); err != nil {
		return p, err
	}
	const most = 1 << 30
	first, err := number(env, "SLURM_ARRAY_TASK_MIN", insideSlurm, 0, most)
	if err != nil {
		return p, err
	}
	step, err := number(env, "SLURM_ARRAY_TASK_STEP", insideSlurm, 1, most)
	if err != nil {
		return p, err
	}
	id, err := number(env, "SLURM_ARRAY_TASK_ID", insideSlurm, first, most)
	if err != nil {
		return p, err
	}
	p.Rank = (id - first) / step
	if p.Rank >= p.Size || (id-first)%step != 0 {
		return p, fmt.Errorf("SLURM_ARRAY_TASK_ID=%d is not one of %d tasks from %d in steps of %d: give --array as a "+
			"range, such as 0-%d", id, p.Size, first, step, p.Size-1)
	}
	p.End = slurmEnd(env)
	p.Folder, p.Job = env("SLURM_SUBMIT_DIR"), plain("slurm-"+env("SLURM_ARRAY_JOB_ID"))
	p.Run = p.Job
	return p, nil
}

// slurmEnd returns the projected end of the job, which Slurm reports since 22.05; 0 without a time limit.
func slurmEnd(env func(string) string) int64 {
	end, err := strconv.ParseInt(env("SLURM_JOB_END_TIME"), 10, 64)
	if err != nil || end < 0 || end > 1<<32 {
		return 0
	}
	return end
}
