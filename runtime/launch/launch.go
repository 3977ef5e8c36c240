// Package launch reads what the engines that place processes say about a fleet, and writes what they are told: the
// variables of Slurm and of torchrun, lists of hosts, hostfiles of MPI, the command lines of ssh and a manifest for
// Kubernetes. It is pure: text and variables in, values and text out; no socket, no file, no process. It imports
// nothing of ours.
//
// Two kinds of engine need two things. One starts the same command several times and numbers the copies (srun, a job
// array, torchrun, an Indexed Job): a [Place] says which copy this is, and copy 0 serves. The other is a list of
// machines on which nothing runs yet: a [Host] is one of them, and [SSH] the command that starts a worker there.
//
// A worker needs the join URL, whose token is a secret and whose key hash is new in every run: neither can be derived
// from what an engine tells everybody. Copies therefore meet in a folder that only their owner reads, or share a secret
// that protects the URL on its way ([Seal]); over ssh it travels on standard input, where no process list shows it.
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

// Place is where one of several copies of a command stands among them.
type Place struct {
	Rank, Size int
	Local      int    // its number among the copies on this machine; 0 where the engine does not say
	Run        string // names this run among others that meet in the same folder; letters, digits, '.', '_' and '-'
	Leader     string // host of rank 0; "" where the engine does not say
	Folder     string // that all copies probably see; "" where the engine does not say
}

// visible are what engines set so that a process sees some of the devices alone, by NVIDIA's, AMD's and Intel's
// drivers.
var visible = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}

// Device is what a copy computes on where --device says so much: a driver without a number stands for the device that
// has the copy's number on its machine, unless the engine shows it one device alone.
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

// local reads a variable with the number of a copy on its machine, which may be missing.
func local(env func(string) string, name, remedy string) (int, error) {
	if env(name) == "" {
		return 0, nil
	}
	return number(env, name, remedy, 0, MaxSize-1)
}

// MaxSize is how many copies or slots a fleet may have: brood serve waits for no more.
const MaxSize = 1024

// number reads a variable that must be a whole number from least to most.
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

// plain makes a text part of a file's name.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, text)
}
