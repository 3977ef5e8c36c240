package models_test

import (
	"fmt"
	"log"
	"strings"

	"brood/models"
)

// A compiled model contains the position of each tensor in the parameter vector.
func ExampleCompile() {
	spec, err := models.Parse(strings.NewReader(`
name = "tiny"
input = [1, 8, 8]
classes = 10
layer = [{kind = "conv", out = 4, kernel = 3}, {kind = "relu"}, {kind = "flatten"}, {kind = "dense", out = 10}]`))
	if err != nil {
		log.Fatal(err)
	}
	m, err := models.Compile(spec)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range m.Layout.Tensors {
		fmt.Println(t.Name, t.Shape, t.Lo)
	}
	fmt.Println(m.Layout.Params)
	// Output:
	// conv1.weight [4 1 3 3] 0
	// conv1.bias [4] 36
	// fc1.weight [10 144] 40
	// fc1.bias [10] 1480
	// 1490
}
