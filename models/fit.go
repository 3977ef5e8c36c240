package models

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"brood/models/data"
)

var (
	inputLine = regexp.MustCompile(`(?m)^input\s*=.*$`)
	countLine = regexp.MustCompile(`(?m)^(classes|outputs)\s*=.*$`)
	outLine   = regexp.MustCompile(`(?m)^out\s*=.*$`)
)

// FitTo returns the text of a layer list adapted to a data set: it replaces the lines input and classes (or outputs)
// and, in the last layer, out. It fails if the result does not compile or does not fit the data.
func FitTo(name string, text []byte, d data.Info) ([]byte, error) {
	count := d.Classes
	if d.Outputs > 0 {
		count = d.Outputs
	}
	head, layers, _ := strings.Cut(string(text), "[[layer]]")
	last := max(0, strings.LastIndex(layers, "[[layer]]"))
	shape := strings.Join(strings.Fields(fmt.Sprint(d.Shape)), ", ")
	head = inputLine.ReplaceAllString(head, "input = ["+strings.Trim(shape, "[]")+"]")
	head = countLine.ReplaceAllString(head, "${1} = "+strconv.Itoa(count))
	end := outLine.ReplaceAllString(layers[last:], "out = "+strconv.Itoa(count))
	fitted := []byte(head + "[[layer]]" + layers[:last] + end)
	m, err := FromSource(name, fitted)
	if err == nil {
		err = m.Fits(d)
	}
	if err != nil {
		return nil, fmt.Errorf("model %s for samples of %v in %d classes: %w", name, d.Shape, count, err)
	}
	return fitted, nil
}
