package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"brood/runtime/option"
)

const maxThreads = 1024

// threadsFlag adds the flag --threads of commands other than runs, which sets to; 0 if it is not given.
func threadsFlag(fl *pflag.FlagSet, to *int) {
	parse := func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxThreads {
			return 0, fmt.Errorf("give 1 to %d", maxThreads)
		}
		return n, nil
	}
	fl.Var(valueFlag[int]{to, "threads", parse, strconv.Itoa}, option.Threads.Name,
		"`threads` that compute (default: all cores)")
}

// programFlags adds the flags --program and --objective, which both set the command of the program of a recorded
// session. The session records which of the two its program is.
func programFlags(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, option.Program.Name, "", option.Program.DocFor("fork"))
	fl.StringVar(to, option.Objective.Name, "", option.Objective.DocFor("fork"))
}
