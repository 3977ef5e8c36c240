package kernel

import (
	"fmt"
	"os"
)

// Variant names one of the implementations. Of those that a CPU runs the larger is the faster.
type Variant uint8

const (
	Portable Variant = iota // Go, any machine
	AVX2                    // amd64 with AVX2 and FMA
	AVX512                  // amd64 with AVX-512 F, BW, DQ and VL
	AMX                     // amd64 with AVX512 and its byte products, and tiles of bytes and of bfloat16
	NEON                    // arm64
	variants
)

func (t Variant) String() string {
	if t >= variants {
		return fmt.Sprintf("variant %d", uint8(t))
	}
	return [variants]string{"portable", "avx2", "avx512", "amx", "neon"}[t]
}

// Variants are all of them, whatever this CPU runs.
func Variants() []Variant {
	out := make([]Variant, variants)
	for i := range out {
		out[i] = Variant(i)
	}
	return out
}

// Best is the fastest variant that this CPU runs.
func Best() Variant {
	for t := variants - 1; t > Portable; t-- {
		if available(t) {
			return t
		}
	}
	return Portable
}

// UnavailableError says that this CPU lacks the instructions of a variant.
type UnavailableError struct{ Variant Variant }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("kernels %s: this CPU lacks the instructions; choose %s, the best it runs", e.Variant, Best())
}

// Choose finds a variant by name; the empty name is Best. It fails for an unknown name and, with an UnavailableError, for
// a variant that this CPU cannot run.
func Choose(name string) (Variant, error) {
	if name == "" {
		return Best(), nil
	}
	for t := Portable; t < variants; t++ {
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
func FromEnv() (Variant, error) {
	t, err := Choose(os.Getenv("BROOD_CPU"))
	if err != nil {
		return 0, fmt.Errorf("BROOD_CPU: %w", err)
	}
	return t, nil
}
