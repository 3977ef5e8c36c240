// Package launch has the formats of the launchers of a fleet: environment variables of Slurm and torchrun, lists of
// hosts, hostfiles of MPI, command lines of ssh and a manifest for Kubernetes. Its functions convert text and variables
// to values and text, without I/O. It imports no other package of this module.
//
// There are two kinds of launchers. One starts the same command several times and numbers the copies (srun, a job
// array, torchrun, an Indexed Job): a [Place] is the number of a copy, and copy 0 runs the coordinator. The other is a
// list of machines without processes: a [Host] is one of them, and [SSH] the command that starts a worker there.
//
// A worker needs the join URL. It contains a secret token and a key hash that is new in every run, so that it cannot be
// derived from the variables of the launcher. Copies therefore exchange the URL in a folder that only their owner can
// read, or encrypt it with a shared secret ([Seal]). With ssh it is sent on standard input, since process lists show
// arguments.
//
//	p, err := launch.Slurm(os.Getenv)          // inside srun -N3: ranks 0, 1 and 2 of 3
//	hosts, err := launch.ParseHosts("a,eve@b:2222")
//	argv := launch.SSH{Program: []string{"ssh"}, Brood: "brood"}.Command(hosts[1], "worker", "-")
package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// Place is the number of a copy of a command, and the place where the copies exchange the join URL.
type Place struct {
	Rank, Size int
	Local      int    // number among the copies on this machine; 0 if unknown
	Run        string // unique in Folder; letters, digits, '.', '_' and '-'
	Job        string // the same for every start of the same job, in the same characters; "" if unknown
	Leader     string // host of rank 0; "" if unknown
	End        int64  // when the scheduler ends the job, in Unix seconds; 0 if unknown
	Folder     string // probably shared by all copies; "" if unknown
}

// visible are the environment variables with which launchers restrict the devices of a process, of the drivers of
// NVIDIA, AMD and Intel.
var visible = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}

// Device returns the --device of a copy for the given text: it appends the copy's number on its machine to a driver
// without a number, unless the launcher restricts the copy to one device.
func (p Place) Device(text string, env func(string) string) string {
	for _, name := range visible {
		if shown := env(name); shown != "" && !strings.Contains(shown, ",") {
			return text
		}
	}
	driver, arithmetic, named := strings.Cut(text, ",")
	if text == "" || driver == "cpu" || strings.Contains(text, ":") {
		return text
	}
	driver += ":" + strconv.Itoa(p.Local)
	if named {
		driver += "," + arithmetic
	}
	return driver
}

// local parses a variable with the number of a copy on its machine; 0 if it is not set.
func local(env func(string) string, name, remedy string) (int, error) {
	if env(name) == "" {
		return 0, nil
	}
	return number(env, name, remedy, 0, MaxSize-1)
}

// MaxSize is the greatest number of copies or slots of a fleet, since brood serve waits for no more.
const MaxSize = 1024

// number parses a variable that must be a whole number from least to most.
func number(env func(string) string, name, remedy string, least, most int) (int, error) {
	text := env(name)
	if text == "" {
		return 0, fmt.Errorf("%s is not set: %s", name, remedy)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s=%q: want a whole number from %d to %d", name, text, least, most)
	}
	return n, nil
}

// plain replaces all characters that are special in the name of a file.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, text)
}
