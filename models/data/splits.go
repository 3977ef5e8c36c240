package data

import (
	"slices"

	"brood/models/noise"
)

// testShare is the share of a user's training samples that becomes the test samples where the data have none.
const testShare = 1.0 / 6

// validationNames are those of a validation split, in the names of files, folders and arrays.
var validationNames = []string{"val", "valid", "validation", "dev"}

// splits are the parts of a user's data; validation and test are nil where the data have none.
type splits struct{ train, validation, test *part }

// all returns the parts that there are, in the order of their samples' ids.
func (s splits) all() []*part {
	return slices.DeleteFunc([]*part{s.train, s.validation, s.test}, func(p *part) bool { return p == nil })
}

// place names sample i as a user finds it in the files, counted over all parts.
func (s splits) place(i int) string {
	for _, p := range s.all() {
		if n := p.samples(); i >= n {
			i -= n
			continue
		}
		return p.place(i)
	}
	return s.train.from
}

// join returns the samples of all parts, one part after the other. It may use the memory of the first.
func join(parts []*part) Raster {
	all := parts[0].Raster
	for _, p := range parts[1:] {
		all.Pixels, all.Values, all.Doubles = append(all.Pixels, p.Pixels...), append(all.Values, p.Values...), append(all.Doubles, p.Doubles...)
		all.Labels, all.Targets = append(all.Labels, p.Labels...), append(all.Targets, p.Targets...)
	}
	return all
}

// drawTests draws a share of the training samples for tests: by the labels of each class, or of all. order is that of
// all samples, in which those come last; samples behind the training samples keep their place before them.
func drawTests(train *part, all int, byClass bool) (order []int, tests int) {
	n := train.samples()
	p := noise.Key{Purpose: noise.Split, Stream: 1}.Permutation(uint64(n))
	drawn := make([]bool, n)
	tests = held(n, testShare)
	kept := n - tests
	left := []int(nil)
	if byClass {
		left, tests = quota(train.Labels, testShare), 0
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
			tests++
		}
	}
	var out []int
	for i := range all {
		if i < n && drawn[i] {
			out = append(out, i)
		} else {
			order = append(order, i)
		}
	}
	return append(order, out...), tests
}

// pick returns the samples in an order.
func (r Raster) pick(order []int) Raster {
	return Raster{
		Pixels:  pick(r.Pixels, order),
		Labels:  pick(r.Labels, order),
		Values:  pick(r.Values, order),
		Doubles: pick(r.Doubles, order),
		Targets: pick(r.Targets, order),
	}
}

// quota is how many samples of each class, up to the last that has some, a share is: at least one, and never all.
func quota(labels []uint16, share float64) []int {
	if len(labels) == 0 {
		return nil
	}
	out := make([]int, int(slices.Max(labels))+1)
	for _, l := range labels {
		out[l]++
	}
	for c, n := range out {
		out[c] = max(0, min(max(held(n, share), 1), n-1))
	}
	return out
}

// pick is the rows of v in this order; nil stays nil.
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
