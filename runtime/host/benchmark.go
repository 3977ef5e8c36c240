package host

import (
	"cmp"
	"fmt"
	"strconv"

	"brood/models/bbob"
	"brood/models/objective"
	"brood/runtime/option"
)

// Dimension and instance of a run that names only a function of the suite. The log records them.
const (
	defaultDimension = "5"
	defaultInstance  = "1"
)

// benchmarked returns the own model of a function of the suite BBOB, from the texts of the options bbob, dimension and
// instance. Its parameters are offsets from the optimum, since float32 has too few digits elsewhere for the last
// targets. They start at a uniform point of [-4, 4], as the suite recommends.
func benchmarked(number, dimension, instance string) (*Own, error) {
	var numbers [3]int
	for i, text := range []string{number, cmp.Or(dimension, defaultDimension), cmp.Or(instance, defaultInstance)} {
		numbers[i], _ = strconv.Atoi(text) // the options are whole numbers
	}
	f, err := bbob.New(numbers[0], numbers[1], numbers[2])
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("bbob f%d", numbers[0])
	spec := objective.Spec{Name: name, Seeds: objective.Seeds{Train: 1, Validation: 1, Test: 1}}
	for j, x := range f.Optimum() {
		spec.Params = append(spec.Params, objective.Param{
			Name:  fmt.Sprintf("x%d", j+1),
			Shape: []int{1},
			Init:  objective.Uniform,
			Scale: 4,
			Start: -x,
		})
	}
	return &Own{builtIn: name, Objective: &objective.Objective{
		Spec:     spec,
		Function: fmt.Sprintf("bbob f%d, %s, instance %d", numbers[0], bbob.Name(numbers[0]), numbers[2]),
		Func: func(u []float32, _ uint64) (float64, error) {
			x := make([]float64, len(u))
			for j, v := range u {
				x[j] = f.Optimum()[j] + float64(v)
			}
			return -f.Gap(x), nil
		},
	}}, nil
}

// recordBuiltIn sets the options of a built-in objective that have a default, so that the log has them.
func (o *Own) recordBuiltIn(to *Options) error {
	for _, x := range []struct {
		*option.Option
		given bool
		text  string
	}{
		{option.Policy, o.simulates(), o.policy},
		{option.Dimension, !o.simulates(), cmp.Or(option.Dimension.Text(*to), defaultDimension)},
		{option.Instance, !o.simulates(), cmp.Or(option.Instance.Text(*to), defaultInstance)},
	} {
		if !x.given {
			continue
		}
		if err := x.Set(to, x.text); err != nil {
			return err
		}
	}
	return nil
}
