package cli

import (
	"math"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"brood/runtime/archive"
)

// bestRound as a round requests the one with the lowest validation loss, see roundOf.
const bestRound = math.MaxUint64

// bestWord is its text.
const bestWord = "best"

// roundVar adds the flag --at of a round: a number, or best.
func roundVar(fl *pflag.FlagSet, to *uint64, doc string) {
	parse := func(text string) (uint64, error) {
		if text == bestWord {
			return bestRound, nil
		}
		return strconv.ParseUint(text, 10, 63)
	}
	format := func(round uint64) string {
		switch round {
		case 0:
			return ""
		case bestRound:
			return bestWord
		}
		return strconv.FormatUint(round, 10)
	}
	fl.Var(valueFlag[uint64]{to, "round", parse, format}, "at", doc)
}

// roundOf returns at, or for bestRound the round of the session in dir whose evaluation has the lowest validation loss.
func roundOf(dir string, at uint64) (uint64, error) {
	if at != bestRound {
		return at, nil
	}
	t, err := archive.ReadTally(dir)
	if err != nil {
		return 0, err
	}
	if at = t.Goal.Losses.Best(); at == 0 {
		return 0, usage("the best round of %s is unknown: no evaluation has a validation loss", filepath.Base(dir))
	}
	return at, nil
}
