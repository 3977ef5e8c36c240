// Package clang compiles kernels to PTX with clang, for go generate and tests.
package clang

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// Name is the compiler's command name.
const Name = "clang-19"

// options: products are not fused, and quotients and roots have IEEE rounding.
var options = strings.Fields("-x cl -cl-std=CL1.2 --target=nvptx64-nvidia-cuda -Xclang -target-cpu -Xclang sm_80 " +
	"-Xclang -target-feature -Xclang +ptx70 -ffp-contract=off -cl-fp32-correctly-rounded-divide-sqrt -O2 -Wall " +
	"-Wno-unused-function -S -o - -")

// PTX compiles OpenCL C to PTX. Warnings are errors.
func PTX(text string) (string, error) {
	var out, messages bytes.Buffer
	c := exec.Command(Name, options...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), &out, &messages
	if err := c.Run(); err != nil || messages.Len() > 0 {
		return "", fmt.Errorf("%s: %v: %.2000s", Name, err, messages.String())
	}
	return out.String(), nil
}
