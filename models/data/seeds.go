package data

// Seeds is samples without content: what is drawn is their ids, which whoever evaluates takes as seeds. The ids to
// train on come first, then those of validation, then those of the test.
func Seeds(train, validation, test int) *Set {
	s := &Set{Info: Info{Name: "seeds", Shape: []int{1}, Classes: 1, From: "the objective's spec"}, features: 1,
		labels: make([]uint16, train+validation+test),
		train:  ids(0, train), validation: ids(train, train+validation), test: ids(train+validation, train+validation+test)}
	s.digest = s.sum(train + validation)
	return s
}
