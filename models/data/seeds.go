package data

// Seeds returns a set of samples without content. An objective uses the drawn sample ids as random seeds. The ids of
// the training samples come first, then those of validation, then those of the test split.
func Seeds(train, validation, test int) *Set {
	s := &Set{
		Info:       Info{Name: "seeds", Shape: []int{1}, Classes: 1, From: "the objective's spec"},
		features:   1,
		labels:     make([]uint16, train+validation+test),
		train:      ids(0, train),
		validation: ids(train, train+validation),
		test:       ids(train+validation, train+validation+test),
	}
	s.digest = s.computeDigest(train + validation)
	return s
}
