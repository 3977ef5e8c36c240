package launch

import (
	"slices"
	"strings"
	"testing"
)

func env(words ...string) func(string) string {
	return func(name string) string {
		for _, w := range words {
			if key, value, _ := strings.Cut(w, "="); key == name {
				return value
			}
		}
		return ""
	}
}

// Environment variables of srun, sbatch and sbatch --array of Slurm 22.05, and of torchrun.
var (
	step = []string{"SLURM_JOB_ID=17", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=3", "SLURM_PROCID=1",
		"SLURM_STEP_NODELIST=n[08-10]", "SLURM_SUBMIT_DIR=/home/eve", "SLURM_NTASKS=3"}
	batch = []string{"SLURM_JOB_ID=17", "SLURM_PROCID=0", "SLURM_NODELIST=n[08-10]", "SLURM_SUBMIT_DIR=/home/eve"}
	array = append(slices.Clone(batch), "SLURM_ARRAY_JOB_ID=12", "SLURM_ARRAY_TASK_ID=9", "SLURM_ARRAY_TASK_MIN=5",
		"SLURM_ARRAY_TASK_MAX=9", "SLURM_ARRAY_TASK_STEP=2", "SLURM_ARRAY_TASK_COUNT=3")
	torch = []string{"RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=head.local", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=a/b",
		"TORCHELASTIC_RESTART_COUNT=1"}
)

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func(func(string) string) (Place, error)
		env  []string
		want Place
	}{
		{"step", Slurm, step, Place{1, 3, 0, "slurm-17.0.0", "slurm-17.0", "n08", 0, "/home/eve"}},
		{"requeued", Slurm, append([]string{"SLURM_RESTART_COUNT=2"}, step...), Place{1, 3, 0, "slurm-17.0.2", "slurm-17.0", "n08", 0, "/home/eve"}},
		{"with a time limit", Slurm, append([]string{"SLURM_JOB_END_TIME=1777650000"}, step...), Place{1, 3, 0, "slurm-17.0.0", "slurm-17.0", "n08", 1777650000, "/home/eve"}},
		{"step in an array", Slurm, append(slices.Clone(step), array...), Place{1, 3, 0, "slurm-17.0.0", "slurm-17.0", "n08", 0, "/home/eve"}},
		{"array", Slurm, array, Place{2, 3, 0, "slurm-12", "slurm-12", "", 0, "/home/eve"}},
		{"torchrun", Torchrun, torch, Place{2, 4, 0, "torchrun-a_b-head.local-29500-1", "torchrun-a_b", "head.local", 0, ""}},
		{"second of its machine", Slurm, append([]string{"SLURM_LOCALID=1"}, step...), Place{1, 3, 1, "slurm-17.0.0", "slurm-17.0", "n08", 0, "/home/eve"}},
		{"third of its machine", Torchrun, append([]string{"LOCAL_RANK=2"}, torch...), Place{2, 4, 2, "torchrun-a_b-head.local-29500-1", "torchrun-a_b", "head.local", 0, ""}},
		{"by hand", Torchrun, torch[:3], Place{2, 4, 0, "torchrun-none-head.local-0-0", "", "head.local", 0, ""}},
	} {
		if got, err := c.of(env(c.env...)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

// TestDevicesOfCopies: each copy on a machine has another device, unless its --device has a number or the launcher
// restricts it to one device.
func TestDevicesOfCopies(t *testing.T) {
	for _, c := range []struct {
		text  string
		local int
		env   string
		want  string
	}{
		{"gpu", 0, "", "gpu:0"}, {"gpu", 3, "", "gpu:3"}, {"cuda", 1, "X=0,1", "cuda:1"}, {"gpu:2", 1, "", "gpu:2"},
		{"gpu,bf16", 3, "", "gpu:3,bf16"}, {"cuda:1,tf32", 3, "", "cuda:1,tf32"}, {"cpu", 1, "", "cpu"},
		{"cpu,bf16", 1, "", "cpu,bf16"}, {"", 1, "", ""},
		{"gpu", 3, "CUDA_VISIBLE_DEVICES=3", "gpu"}, {"gpu", 1, "CUDA_VISIBLE_DEVICES=4,5", "gpu:1"},
		{"opencl", 2, "ROCR_VISIBLE_DEVICES=GPU-12ab", "opencl"},
	} {
		if got := (Place{Local: c.local}).Device(c.text, env(c.env)); got != c.want {
			t.Errorf("--device %s of copy %d, %s: %s, want %s", c.text, c.local, c.env, got, c.want)
		}
	}
}

func TestPlacesRefuse(t *testing.T) {
	for _, c := range []struct {
		of   func(func(string) string) (Place, error)
		env  []string // of several values of a name the first applies
		base []string
		want string
	}{
		{Slurm, nil, nil, "SLURM_PROCID is not set: run this inside srun"},
		{Slurm, nil, batch, "this is the batch script"},
		{Slurm, []string{"SLURM_PROCID="}, step, "SLURM_PROCID is not set"},
		{Slurm, []string{"SLURM_LOCALID=-1"}, step, `SLURM_LOCALID="-1": want a whole number from 0`},
		{Torchrun, []string{"LOCAL_RANK=x"}, torch, `LOCAL_RANK="x"`},
		{Slurm, []string{"SLURM_PROCID=3"}, step, `SLURM_PROCID="3": want a whole number from 0 to 2`},
		{Slurm, []string{"SLURM_STEP_NUM_TASKS=many"}, step, "SLURM_STEP_NUM_TASKS"},
		{Slurm, []string{"SLURM_STEP_NUM_TASKS=99999"}, step, "from 1 to 1024"},
		{Slurm, []string{"SLURM_STEP_NODELIST=n[08-"}, step, "SLURM_STEP_NODELIST"},
		{Slurm, []string{"SLURM_ARRAY_TASK_ID=8"}, array, "give --array as a range, such as 0-2"},
		{Slurm, []string{"SLURM_ARRAY_TASK_ID=11"}, array, "is not one of 3 tasks"},
		{Slurm, []string{"SLURM_ARRAY_TASK_ID=1"}, array, "SLURM_ARRAY_TASK_ID"},
		{Slurm, []string{"SLURM_ARRAY_TASK_STEP=0"}, array, "SLURM_ARRAY_TASK_STEP"},
		{Torchrun, nil, nil, "WORLD_SIZE is not set: run this under torchrun"},
		{Torchrun, []string{"RANK="}, torch, "RANK is not set"},
		{Torchrun, []string{"RANK=-1"}, torch, `RANK="-1": want a whole number from 0 to 3`},
		{Torchrun, []string{"MASTER_ADDR="}, torch, "MASTER_ADDR is not set"},
	} {
		got, err := c.of(env(append(slices.Clone(c.env), c.base...)...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %+v, %v; want %q", c.env, got, err, c.want)
		}
	}
}

func TestNodes(t *testing.T) {
	for list, want := range map[string]string{
		"vm":                  "vm",
		"n[1-3]":              "n1 n2 n3",
		"n[08-11,2],login":    "n08 n09 n10 n11 n2 login",
		"a,b,c[5]":            "a b c5",
		"r[1-2]c[1-2]":        "r1c1 r1c2 r2c1 r2c2",
		"rack[1]-gpu[09-10]x": "rack1-gpu09x rack1-gpu10x",
	} {
		if got, err := Nodes(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v; want %s", list, got, err, want)
		}
	}
	for _, list := range []string{"", "a,", ",a", "n[1-3", "n1-3]", "n[[1]]", "n[]", "n[3-1]", "n[a-b]", "n[1,,2]",
		"n[1-99999999]", "n[1-999]m[1-999]", "n[-1]", "(null)["} {
		if got, err := Nodes(list); err == nil || !strings.Contains(err.Error(), "is not a list of nodes") {
			t.Errorf("%q: %d nodes, %v", list, len(got), err)
		}
	}
}

func FuzzNodes(f *testing.F) {
	f.Add("n[08-11,2],login,r[1-2]c[1-2]")
	f.Fuzz(func(t *testing.T, list string) {
		got, err := Nodes(list)
		if err == nil && (len(got) == 0 || len(got) > maxNodes || slices.Contains(got, "")) {
			t.Errorf("%q gives %d nodes", list, len(got))
		}
	})
}

func TestSeal(t *testing.T) {
	secret, url := strings.Repeat("s", MinSecret), "brood://h:1/token#hash"
	a, err := Seal(secret, url)
	if err != nil || strings.Contains(string(a), "token") {
		t.Fatalf("%q, %v", a, err)
	}
	if got, err := Unseal(secret, a); err != nil || got != url {
		t.Errorf("%q, %v", got, err)
	}
	if b, _ := Seal(secret, url); string(a) == string(b) {
		t.Error("equal texts give equal bytes")
	}
	if _, err := Unseal(strings.Repeat("t", MinSecret), a); err == nil {
		t.Error("another secret unseals it")
	}
	for i := range a {
		a[i] ^= 1
		if _, err := Unseal(secret, a); err == nil {
			t.Errorf("unsealed with byte %d changed", i)
		}
		a[i] ^= 1
	}
	if _, err := Unseal(secret, nil); err == nil {
		t.Error("no bytes are unsealed")
	}
	if _, err := Seal("guess", url); err == nil || !strings.Contains(err.Error(), "openssl rand -hex 32") {
		t.Error(err)
	}
}
