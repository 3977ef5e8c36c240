package host

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"brood/models/longtest"
)

// TestAuto: an automatic population keeps all threads busy, is accepted by the algorithm, and fits into memory.
func TestAuto(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		threads   int
		want      int
	}{
		{"dp-sgd", 3, 3},
		{"parle", 1, 1},
		{"popsgd", 1, 2},     // pairs
		{"openai-es", 2, 32}, // evaluations only, in antithetic pairs
		{"openai-es", 3, 48},
	} {
		o := tiny(1)
		o.Set, o.Algorithm, o.Threads, o.Members = nil, c.algorithm, c.threads, Auto
		if j := weigh(t, o); j.Members != c.want {
			t.Errorf("%s on %d threads: %d members, want %d", c.algorithm, c.threads, j.Members, c.want)
		}
	}
}

// TestFits: a run that needs more memory than available is rejected. The error names the largest population that fits,
// and that population is accepted. An automatic population stays below the limit.
func TestFits(t *testing.T) {
	real := machineMemory
	defer func() { machineMemory = real }()
	o := tiny(1)
	o.Members = 40
	whole := weigh(t, o).Config.Memory
	one := tiny(1)
	one.Members = 1
	least := weigh(t, one).Config.Memory
	machineMemory = func() int64 { return (whole + least) / 2 }
	_, err := Prepare(o)
	if err == nil {
		t.Fatal("a run that does not fit was prepared")
	}
	var most int
	_, text, _ := strings.Cut(err.Error(), ": ")
	if _, bad := fmt.Sscanf(text, "%d would fit", &most); bad != nil ||
		!strings.HasPrefix(err.Error(), "a run with 40 members needs about") {
		t.Fatalf("a run that does not fit: %v", err)
	}
	o.Members = most
	if j := weigh(t, o); j.Config.Memory > machineMemory() {
		t.Errorf("%d members need %d bytes of %d", most, j.Config.Memory, machineMemory())
	}
	o.Members++
	if _, err := Prepare(o); err == nil {
		t.Errorf("the error states that %d members fit, but one more does too", most)
	}
	machineMemory = func() int64 { return 1 << 62 }
	o.Members, o.Threads, one.Threads = 40, 40, 40
	half := (weigh(t, o).Config.Memory + weigh(t, one).Config.Memory) / 2
	machineMemory = func() int64 { return int64(float64(half) / filling) }
	o.Members = Auto
	chosen := weigh(t, o)
	o.Members = chosen.Members + 1
	if more := weigh(t, o); chosen.Config.Memory > half || more.Config.Memory <= half {
		t.Errorf("%d members chosen for %d bytes need %d, one more %d", chosen.Members, half, chosen.Config.Memory,
			more.Config.Memory)
	}
	machineMemory = func() int64 { return least / 2 }
	if _, err := Prepare(one); err == nil || !strings.Contains(err.Error(), "take a smaller model or batch") {
		t.Errorf("not even one member fits: %v", err)
	}
}

// TestFitsPairs: for an algorithm that only accepts even numbers, the error names an even number.
func TestFitsPairs(t *testing.T) {
	real := machineMemory
	defer func() { machineMemory = real }()
	o := tiny(1)
	o.Algorithm, o.Set = "openai-es", nil
	for _, limit := range []int{10, 11, 24} {
		machineMemory = func() int64 { return 0 }
		o.Members = 2 * limit
		few := weigh(t, o).Config.Memory
		o.Members = 60
		machineMemory = func() int64 { return few + 1 }
		_, err := Prepare(o)
		if err == nil || !strings.HasSuffix(err.Error(), fmt.Sprintf(": %d would fit", 2*limit)) {
			t.Errorf("memory for %d members: %v", 2*limit, err)
		}
	}
}

// TestFitsThousands: a run with thousands of members is rejected by extrapolation from smaller dry runs. The figures in
// the error are within 5% of a dry run of all members.
func TestFitsThousands(t *testing.T) {
	longtest.Need(t, longtest.Studies, "dry-runs thousands of members")
	real := machineMemory
	defer func() { machineMemory = real }()
	machineMemory = func() int64 { return 0 }
	of := func(algorithm string, members int) Options {
		o := tiny(1)
		o.Algorithm, o.Members, o.Set = algorithm, members, nil
		return o
	}
	for _, algorithm := range []string{"dp-sgd", "elastic", "openai-es"} {
		needs := func(members int) int64 {
			return weigh(t, of(algorithm, members)).Config.Memory
		}
		const many = 16 * sampled
		whole, limit := needs(many), needs(10*sampled)
		machineMemory = func() int64 { return limit }
		j, err := Prepare(of(algorithm, many))
		if err == nil {
			t.Fatalf("%s: %d members of %d bytes fit into %d", algorithm, many, j.Config.Memory, limit)
		}
		var about float64
		var most int
		if _, bad := fmt.Sscanf(err.Error(), "a run with 8192 members needs about %g GB", &about); bad != nil ||
			math.Abs(about*1e9/float64(whole)-1) > 0.05 {
			t.Errorf("%s: %v; a dry run predicts %s", algorithm, err, gb(whole))
		}
		_, text, _ := strings.Cut(err.Error(), ": ")
		if _, bad := fmt.Sscanf(text, "%d would fit", &most); bad != nil || most > 10*sampled || most < 9*sampled {
			t.Errorf("%s: %v; %d would", algorithm, err, 10*sampled)
		}
		machineMemory = func() int64 { return 0 }
	}
}
