package kernel

import (
	"fmt"
	"os"
)

// Variant is one of the implementations. Of those that a CPU can run, a larger one is faster.
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

// Variants returns all variants, including those that this CPU cannot run.
func Variants() []Variant {
	out := make([]Variant, variants)
	for i := range out {
		out[i] = Variant(i)
	}
	return out
}

// Best returns the fastest variant that this CPU can run.
func Best() Variant {
	for t := variants - 1; t > Portable; t-- {
		if available(t) {
			return t
		}
	}
	return Portable
}

// UnavailableError reports that this CPU lacks the instructions of a variant.
type UnavailableError struct{ Variant Variant }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("kernels %s: this CPU lacks the instructions; choose %s, the best it runs", e.Variant, Best())
}

// Choose returns a variant by name; the empty name is Best. It fails for an unknown name and returns an
// UnavailableError for a variant that this CPU cannot run.
func Choose(name string) (Variant, error) {
	if name == "" {
		return Best(), nil
	}
	for t := range variants {
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

// FromEnv returns Choose of the environment variable BROOD_CPU.
func FromEnv() (Variant, error) {
	t, err := Choose(os.Getenv("BROOD_CPU"))
	if err != nil {
		return 0, fmt.Errorf("BROOD_CPU: %w", err)
	}
	return t, nil
}
