// Package clang has clang make PTX of kernels, for go generate and tests.
package clang

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// Name is the compiler that is run.
const Name = "clang-19"

// options: products are not fused, and quotients and roots are rounded as IEEE says.
var options = strings.Fields("-x cl -cl-std=CL1.2 --target=nvptx64-nvidia-cuda -Xclang -target-cpu -Xclang sm_80 " +
	"-Xclang -target-feature -Xclang +ptx70 -ffp-contract=off -cl-fp32-correctly-rounded-divide-sqrt -O2 -Wall -Wno-unused-function -S -o - -")

// PTX is what the compiler makes of a text of OpenCL C, without a warning.
func PTX(text string) (string, error) {
	var out, said bytes.Buffer
	c := exec.Command(Name, options...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), &out, &said
	if err := c.Run(); err != nil || said.Len() > 0 {
		return "", fmt.Errorf("%s: %v: %.2000s", Name, err, said.String())
	}
	return out.String(), nil
}
