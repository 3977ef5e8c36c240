package data

import (
	"slices"

	"brood/models/noise"
)

// testShare is the share of a user's training samples that becomes the test samples where the data have none.
const testShare = 1.0 / 6

// validationNames lists the accepted names of a validation split in file, folder and array names.
var validationNames = []string{"val", "valid", "validation", "dev"}

// splits is the parts of a user's data. validation and test are nil if the data do not contain them.
type splits struct{ train, validation, test *part }

// all returns the non-nil parts, in the order of their samples' ids.
func (s splits) all() []*part {
	return slices.DeleteFunc([]*part{s.train, s.validation, s.test}, func(p *part) bool { return p == nil })
}

// find returns the part of sample i, counted over all parts, and its number there.
func (s splits) find(i int) (*part, int) {
	for _, p := range s.all() {
		n := p.samples()
		if i < n {
			return p, i
		}
		i -= n
	}
	return s.train, i
}

// sampleName describes sample i, counted over all parts, in errors by its file and line or row.
func (s splits) sampleName(i int) string {
	p, i := s.find(i)
	return p.sampleName(i)
}

// source returns the file of sample i, counted over all parts, and its number there from 1.
func (s splits) source(i int) (file string, row int) {
	p, i := s.find(i)
	return p.source(i)
}

// join returns the concatenated samples of all parts. It may reuse the memory of the first.
func join(parts []*part) Raster {
	all := parts[0].Raster
	for _, p := range parts[1:] {
		all.Pixels = append(all.Pixels, p.Pixels...)
		all.Values, all.Doubles = append(all.Values, p.Values...), append(all.Doubles, p.Doubles...)
		all.Labels, all.Targets = append(all.Labels, p.Labels...), append(all.Targets, p.Targets...)
	}
	return all
}

// drawTests draws testShare of the training samples as test samples: by their turns (see [SplitBy.take]) if they have
// some, else per class if byClass is set. all is the number of samples including other splits. order is a permutation
// of all samples with the tests drawn samples last; the others stay in their order.
func drawTests(train *part, all int, byClass bool, by SplitBy, turns []int32) (order []int, tests int) {
	n := train.samples()
	p := noise.Key{Purpose: noise.Split, Stream: 1}.Permutation(uint64(n))
	drawn := make([]bool, n)
	kept := n - validationCount(n, testShare)
	left := []int(nil)
	if byClass {
		left = quota(train.Labels, testShare)
	}
	if turns != nil {
		drawn, n = by.take(turns, testShare), 0
	}
	for i := range n {
		id := int(p.At(uint64(i)))
		if !byClass {
			drawn[id] = i >= kept
			continue
		}
		if l := train.Labels[id]; left[l] > 0 {
			left[l]--
			drawn[id] = true
		}
	}
	var out []int
	for i := range all {
		if i < len(drawn) && drawn[i] {
			out = append(out, i)
		} else {
			order = append(order, i)
		}
	}
	return append(order, out...), len(out)
}

// pick returns the samples of r in the given order.
func (r Raster) pick(order []int) Raster {
	return Raster{
		Pixels:  pick(r.Pixels, order),
		Labels:  pick(r.Labels, order),
		Values:  pick(r.Values, order),
		Doubles: pick(r.Doubles, order),
		Targets: pick(r.Targets, order),
	}
}

// quota returns, per class up to the largest label, the number of samples in a share of the class: at least one, but
// never all of its samples.
func quota(labels []uint16, share float64) []int {
	if len(labels) == 0 {
		return nil
	}
	out := make([]int, int(slices.Max(labels))+1)
	for _, l := range labels {
		out[l]++
	}
	for c, n := range out {
		out[c] = max(0, min(max(validationCount(n, share), 1), n-1))
	}
	return out
}

// pick returns the rows of v, one per element of order, in that order; nil for a nil v.
func pick[T any](v []T, order []int) []T {
	if v == nil {
		return nil
	}
	size := len(v) / len(order)
	out := make([]T, 0, len(v))
	for _, i := range order {
		out = append(out, v[i*size:(i+1)*size]...)
	}
	return out
}
