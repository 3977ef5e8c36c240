package launch

import (
	"cmp"
	"fmt"
)

const insideTorchrun = "run this under torchrun, or under what sets RANK, WORLD_SIZE and MASTER_ADDR as it does"

// Torchrun is the place that RANK, WORLD_SIZE and MASTER_ADDR give, as torchrun, Kubeflow and [Manifest] set them.
// MASTER_PORT is left alone: torchrun's own store listens there.
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
	// A restart by torchrun restarts all ranks: those of the new life must not read what the old one left.
	p.Run = plain("torchrun-" + cmp.Or(env("TORCHELASTIC_RUN_ID"), "none") + "-" + p.Leader + "-" +
		cmp.Or(env("MASTER_PORT"), "0") + "-" + cmp.Or(env("TORCHELASTIC_RESTART_COUNT"), "0"))
	return p, nil
}
