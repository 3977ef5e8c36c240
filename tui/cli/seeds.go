package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// seedsFlag holds the seeds of a batch: a number of them from the first one on, or a list.
type seedsFlag struct {
	count int
	first int
	list  []int // in place of count and first; nil: none
}

func (f *seedsFlag) register(c *cobra.Command, count int) {
	f.count = count
	c.Flags().Var(f, "seeds", "runs of each setting, with seeds 1, 2, ...; or the seeds themselves, such as 7,1009")
	c.Flags().IntVar(&f.first, "first-seed", 1, "the first of the seeds: pilots and tuning take others than the "+
		"judged runs")
}

func (f *seedsFlag) String() string {
	if f.list == nil {
		return strconv.Itoa(f.count)
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(f.list), "[]"), " ", ",")
}

func (f *seedsFlag) Type() string { return "seeds" }

func (f *seedsFlag) Set(text string) error {
	var numbers []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == 1 {
		f.count, f.list = numbers[0], nil
		return nil
	}
	f.list = numbers
	return nil
}

// maxSeed is the largest seed of a batch.
const maxSeed = 1_000_000_000

func (f *seedsFlag) check(c *cobra.Command) error {
	switch {
	case f.list != nil && c.Flags().Changed("first-seed"):
		return usage("--first-seed and a list of --seeds exclude each other: give --seeds a number")
	case f.list == nil && (f.count < 1 || f.count > 1000):
		return usage("--seeds %d: give 1 to 1000, or seeds such as 7,1009", f.count)
	case f.first < 1 || f.first > maxSeed:
		return usage("--first-seed %d: give 1 to %d", f.first, maxSeed)
	}
	for i, seed := range f.list {
		if seed < 1 || seed > maxSeed || slices.Contains(f.list[:i], seed) {
			return usage("--seeds %s: give different numbers from 1 to %d", f, maxSeed)
		}
	}
	return nil
}

// all returns the seeds.
func (f *seedsFlag) all() []int {
	if f.list != nil {
		return f.list
	}
	return consecutive(f.first, f.count)
}

// consecutive returns n numbers from first on.
func consecutive(first, n int) (out []int) {
	for i := range n {
		out = append(out, first+i)
	}
	return out
}
