package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"brood/runtime/option"
)

const maxThreads = 1024

// threadCount is how many threads a command other than a run may take; 0 where it is not given.
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

// threadsFlag gives a command --threads, which tells to.
func threadsFlag(fl *pflag.FlagSet, to *int) {
	fl.Var((*threadCount)(to), option.Threads.Name, "`threads` that compute (default: all cores)")
}

// programFlags registers the flags that give a recorded session its program again. Which of them is used does not
// matter, since the session says what its program does.
func programFlags(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, option.Program.Name, "", option.Program.DocFor("fork"))
	fl.StringVar(to, option.Objective.Name, "", option.Objective.DocFor("fork"))
}
