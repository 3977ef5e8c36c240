package optim

import (
	"fmt"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
)

// The knobs of the part of the training set from which a member draws. [Env.Deal] reads them.
var (
	KnobSplit = Knob{
		Group:   GroupStream,
		Only:    When{"parts", []string{"windows"}},
		Name:    "split",
		Title:   "data share",
		Doc:     "share of the training set that each member sees: a contiguous window of its permutation",
		Min:     0.001,
		Max:     1,
		Default: 1,
	}
	KnobParts = Knob{
		Group: GroupStream,
		Name:  "parts",
		Title: "data parts",
		Doc: "members see windows of the share split, which may overlap, or disjoint parts: of equal size and like the " +
			"whole (disjoint), of a few shards of the samples sorted by class (shards), or with shares of each class " +
			"drawn from a Dirichlet distribution (dirichlet)",
		Choices: []string{"windows", "disjoint", "shards", "dirichlet"},
	}
	KnobShards = Knob{
		Group:   GroupStream,
		Only:    When{"parts", []string{"shards"}},
		Name:    "shards",
		Title:   "shards a member",
		Doc:     "shards of one class, or of two that follow each other, in the part of a member",
		Min:     1,
		Max:     1000,
		Default: 2,
		Integer: true,
		Scale:   Log,
	}
	KnobConcentration = Knob{
		Group:   GroupStream,
		Only:    When{"parts", []string{"dirichlet"}},
		Name:    "concentration",
		Title:   "concentration",
		Doc:     "of the Dirichlet distribution (alpha): at 0.1 most members have few classes, at 100 all have equal shares",
		Min:     0.001,
		Max:     1e6,
		Default: 0.5,
		Scale:   Log,
	}
)

// InnerStream lists the knobs that [Env.GradientStep] and [Env.Deal] read, for algorithms with one data stream per
// member that declare their own knob decay. MemberStream has it too.
var (
	InnerStream  = []Knob{KnobB, KnobClip, KnobSplit, KnobParts, KnobShards, KnobConcentration}
	MemberStream = append([]Knob{KnobB, KnobWD}, InnerStream[1:]...)
)

// dealing is how the training set is divided among n members. The zero value: all members see all samples.
type dealing struct {
	n      int
	share  float64 // of windows; 0: disjoint parts
	by     string  // shards, dirichlet, or "" for ranges of a permutation
	shards int
	alpha  float64
}

// ByClass reports whether the parts of the members follow the classes of the samples.
func (v Values) ByClass() bool {
	return v.Has(KnobParts.Name) && (v.Is("parts", "shards") || v.Is("parts", "dirichlet"))
}

// DataShare returns the share of the training set that a member sees: the knob split, or 0 for disjoint parts.
func (v Values) DataShare() float64 {
	switch {
	case v.Has(KnobParts.Name) && !v.Is("parts", "windows"):
		return 0
	case v.Has(KnobSplit.Name):
		return v.Get(KnobSplit.Name)
	}
	return KnobSplit.Default
}

// CheckParts returns an error, one sentence, if the samples cannot be divided by class among the members.
func (s Shape) CheckParts() error {
	if !s.K.ByClass() {
		return nil
	}
	each := 1
	if s.K.Is("parts", "shards") {
		each = s.K.I(KnobShards.Name)
	}
	switch n := len(s.Roster.Members); {
	case s.Data.Classes < 2:
		return fmt.Errorf("parts = %s divides the samples by class, and these data have no classes: set parts to disjoint",
			s.K.Choice("parts"))
	case n*each > s.Data.Train:
		return fmt.Errorf("parts = %s: %d members need %d training samples, and there are %d: give fewer members, "+
			"or set parts to windows", s.K.Choice("parts"), n, n*each, s.Data.Train)
	}
	return nil
}

// Deal divides the training set among the members of the roster by the knobs k. The runtime calls it before each round.
// Parts depend on the seed, the rank of a member and the number of members only: a change of the population deals
// again.
func (e *Env) Deal(k Values) {
	d := dealing{n: len(e.Roster.Members), share: k.DataShare()}
	if k.ByClass() && !e.MetaOnly {
		d.by = k.Choice("parts")
		if d.by == "shards" {
			d.shards = k.I(KnobShards.Name)
		} else {
			d.alpha = k.Get(KnobConcentration.Name)
		}
	}
	if d == e.dealing {
		return
	}
	e.dealing, e.parts = d, nil
	switch key := (noise.Key{Seed: e.Seed, Purpose: noise.Split, Round: 2}); d.by {
	case "shards":
		e.parts = data.LabelShards(e.Data.Train(), e.Data.Label, d.n, d.shards, key)
	case "dirichlet":
		e.parts = data.Dirichlet(e.Data.Train(), e.Data.Label, d.n, d.alpha, key)
	}
}

// Samples returns the number of training samples in the part of member m.
func (e *Env) Samples(m engine.Member) int {
	_, w := e.part(m)
	return w.Len
}

// part returns the samples from which member m (of n) draws, as a window of a permutation of ids: all of those of its
// part by class; else, of N training samples, share*N from floor(N*rank/n) on, wrapping around, or for disjoint parts
// the samples up to the next member's window.
func (e *Env) part(m engine.Member) (ids []int32, w data.Window) {
	all := e.Data.Train()
	switch d := e.dealing; {
	case d == dealing{} || d.share >= 1:
		return all, data.Window{Len: len(all)}
	case e.parts != nil:
		own := e.parts[e.Roster.Rank(m)]
		return own, data.Window{Len: len(own)}
	default:
		lo, hi := engine.Cut(len(all), e.Roster.Rank(m), len(e.Roster.Members))
		if d.share > 0 {
			return all, data.Window{Lo: lo, Len: max(1, int(d.share*float64(len(all))))}
		}
		return all, data.Window{Lo: lo, Len: max(1, hi-lo)}
	}
}

// passSamples returns the sum of the sizes of all parts. Disjoint parts cover the training set, with at least one
// sample each; windows have equal lengths.
func (e *Env) passSamples() int64 {
	all := e.Roster.Members
	if e.dealing != (dealing{}) && e.dealing.share == 0 {
		return int64(max(len(e.Data.Train()), len(all)))
	}
	return int64(len(all) * e.Samples(all[0]))
}

// Stream returns n sample ids of member m's data stream, starting at a cursor.
func (e *Env) Stream(m engine.Member, cursor uint64, n int) []int32 {
	out := make([]int32, n)
	ids, w := e.part(m)
	e.batch(out, ids, e.Rand(noise.Order, 0, m), cursor, w)
	return out
}
