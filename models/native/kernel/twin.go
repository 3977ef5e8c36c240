package kernel

import (
	"fmt"
	"os"
)

// Twin names one of the implementations. Of those that a CPU runs the larger is the faster.
type Twin uint8

const (
	Portable Twin = iota // Go, any machine
	AVX2                 // amd64 with AVX2 and FMA
	AVX512               // amd64 with AVX-512 F, BW, DQ and VL
	AMX                  // amd64 with AVX512 and its byte products, and tiles of bytes and of bfloat16
	NEON                 // arm64
	twins
)

func (t Twin) String() string {
	if t >= twins {
		return fmt.Sprintf("twin %d", uint8(t))
	}
	return [twins]string{"portable", "avx2", "avx512", "amx", "neon"}[t]
}

// Twins are all of them, whatever this CPU runs.
func Twins() []Twin {
	out := make([]Twin, twins)
	for i := range out {
		out[i] = Twin(i)
	}
	return out
}

// Best is the fastest twin that this CPU runs.
func Best() Twin {
	for t := twins - 1; t > Portable; t-- {
		if available(t) {
			return t
		}
	}
	return Portable
}

// UnavailableError says that this CPU lacks the instructions of a twin.
type UnavailableError struct{ Twin Twin }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("kernels %s: this CPU lacks the instructions; choose %s, the best it runs", e.Twin, Best())
}

// Choose finds a twin by name; the empty name is Best. It fails for an unknown name and, with an UnavailableError, for
// a twin that this CPU cannot run.
func Choose(name string) (Twin, error) {
	if name == "" {
		return Best(), nil
	}
	for t := Portable; t < twins; t++ {
		if t.String() != name {
			continue
		}
		if !available(t) {
			return 0, &UnavailableError{t}
		}
		return t, nil
	}
	return 0, fmt.Errorf("kernels %q: unknown; choose amx, avx512, avx2, neon or portable", name)
}

// FromEnv is Choose of the environment variable BROOD_CPU.
func FromEnv() (Twin, error) {
	t, err := Choose(os.Getenv("BROOD_CPU"))
	if err != nil {
		return 0, fmt.Errorf("BROOD_CPU: %w", err)
	}
	return t, nil
}
