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

// roundFlag is a flag of a round: a number, or best.
type roundFlag struct{ to *uint64 }

func (f roundFlag) Set(text string) (err error) {
	if *f.to = bestRound; text != bestWord {
		*f.to, err = strconv.ParseUint(text, 10, 63)
	}
	return err
}

func (f roundFlag) String() string {
	switch *f.to {
	case 0:
		return ""
	case bestRound:
		return bestWord
	}
	return strconv.FormatUint(*f.to, 10)
}

// Type is the placeholder of the value in help texts.
func (f roundFlag) Type() string { return "round" }

func roundVar(fl *pflag.FlagSet, to *uint64, doc string) { fl.Var(roundFlag{to}, "at", doc) }

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
