package data

// SeedsName is the name of the set of [Seeds].
const SeedsName = "seeds"

// Seeds returns a set of samples without content. An objective uses the drawn sample ids as random seeds. The ids of
// the training samples come first, then those of validation, then those of the test split.
func Seeds(train, validation, test int) *Set {
	s := &Set{
		Info:       Info{Name: SeedsName, Shape: []int{1}, Classes: 1, From: "the objective's spec"},
		features:   1,
		labels:     make([]uint16, train+validation+test),
		train:      ids(0, train),
		validation: ids(train, train+validation),
		test:       ids(train+validation, train+validation+test),
	}
	s.digest = s.computeDigest(train + validation)
	return s
}

// Elsewhere returns a set of samples without content, which a program of the user holds. digest identifies them, and
// name is for people. The ids of the training samples come first, then those of validation, then those of the test
// split. If there are no validation samples, [DefaultShare] of the training samples is held out for validation.
func Elsewhere(name, digest string, train, validation, test int) *Set {
	s := &Set{
		Info:             Info{Name: name, Shape: []int{1}, Classes: 1, From: "the program"},
		features:         1,
		labels:           make([]uint16, train+validation+test),
		test:             ids(train+validation, train+validation+test),
		markedValidation: validation,
		digest:           digest,
	}
	if err := s.split(train+validation, DefaultShare); err != nil {
		panic(err) // impossible: the default share leaves training samples
	}
	return s
}
