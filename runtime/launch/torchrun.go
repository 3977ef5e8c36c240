package launch

import (
	"cmp"
	"fmt"
)

const insideTorchrun = "run this under torchrun, or set RANK, WORLD_SIZE and MASTER_ADDR as torchrun does"

// Torchrun returns the place of a copy from RANK, WORLD_SIZE and MASTER_ADDR, which torchrun, Kubeflow and
// [Kubernetes.Manifest] set. Nothing may listen on MASTER_PORT, where the store of torchrun listens.
//
// Source: "Environment Variables" of torch.distributed.run.
func Torchrun(env func(string) string) (p Place, err error) {
	if p.Size, err = number(env, "WORLD_SIZE", insideTorchrun, 1, MaxSize); err != nil {
		return p, err
	}
	if p.Rank, err = number(env, "RANK", insideTorchrun, 0, p.Size-1); err != nil {
		return p, err
	}
	if p.Local, err = local(env, "LOCAL_RANK", insideTorchrun); err != nil {
		return p, err
	}
	if p.Leader = env("MASTER_ADDR"); p.Leader == "" {
		return p, fmt.Errorf("MASTER_ADDR is not set: %s", insideTorchrun)
	}
	// torchrun restarts all ranks together: the restart count tells their files from those of the previous start.
	p.Run = plain("torchrun-" + cmp.Or(env("TORCHELASTIC_RUN_ID"), "none") + "-" + p.Leader + "-" +
		cmp.Or(env("MASTER_PORT"), "0") + "-" + cmp.Or(env("TORCHELASTIC_RESTART_COUNT"), "0"))
	if id := env("TORCHELASTIC_RUN_ID"); id != "" && id != "none" { // torchrun's default
		p.Job = plain("torchrun-" + id)
	}
	return p, nil
}
