package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"brood/runtime/option"
)

const maxThreads = 1024

// threadCount is the flag --threads of commands other than runs; 0 if it is not given.
type threadCount int

func (n *threadCount) String() string { return strconv.Itoa(int(*n)) }
func (n *threadCount) Type() string   { return "threads" }

func (n *threadCount) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > maxThreads {
		return fmt.Errorf("give 1 to %d", maxThreads)
	}
	*n = threadCount(v)
	return nil
}

// threadsFlag adds the flag --threads, which sets to.
func threadsFlag(fl *pflag.FlagSet, to *int) {
	fl.Var((*threadCount)(to), option.Threads.Name, "`threads` that compute (default: all cores)")
}

// programFlags adds the flags --program and --objective, which both set the command of the program of a recorded
// session. The session records which of the two its program is.
func programFlags(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, option.Program.Name, "", option.Program.DocFor("fork"))
	fl.StringVar(to, option.Objective.Name, "", option.Objective.DocFor("fork"))
}
