package host

import (
	"fmt"
	"sort"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"brood/optim"
	"brood/runtime/coordinator"
	"brood/runtime/option"
)

// Auto, as a number of members, asks for as many as keep all threads busy and fit into the memory, see [Job.fill].
const Auto = option.Auto

// Filling is how much of the memory an automatic population may take; candidates is its size for each thread where
// members are only evaluated, which costs little and whose number is the quality of the step.
const (
	filling    = 0.8
	candidates = 16
)

// Memory is what this process may use, in bytes: the machine's or its control group's; 0 when unknown.
func Memory() int64 { return machineMemory() }

var machineMemory = func() int64 {
	all, err := memlimit.FromSystem()
	if err != nil {
		return 0
	}
	if group, err := memlimit.FromCgroup(); err == nil && group > 0 {
		all = min(all, group)
	}
	return int64(min(all, 1<<62))
}

// fill chooses the members of an automatic population: one for each thread, or some for each where members are only
// evaluated, or as many more as the algorithm needs; fewer if the memory asks for it.
func (j *Job) fill(eng compute) error {
	if j.Members != Auto {
		return nil
	}
	want := j.Threads
	if j.Alg.Needs&optim.Gradients == 0 && j.Alg.Needs.Model() {
		want *= candidates
	}
	var err error
	for j.Members = want; j.Members <= want+64; j.Members++ { // an even number, a pair
		if _, err = coordinator.New(j.core()); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	limit := int64(filling * float64(machineMemory()))
	single, err := j.single(eng)
	if err != nil || limit == 0 || j.needs(j.Members, single) <= limit {
		return err
	}
	if most := j.most(limit, single); most > 0 {
		j.Members = most
	}
	return nil
}

// sampled is a population that is rehearsed in no time; what larger ones need grows in proportion to it.
const sampled = 512

// slope predicts memory from two rehearsals of few members: at sampled ones, and for each more. Of ten thousands of
// members a rehearsal takes many seconds. ok is false where there are too few members to save anything, or the
// algorithm refuses these numbers.
func (j *Job) slope(single compute) (at, each float64, ok bool) {
	if j.Members < 8*sampled {
		return 0, 0, false
	}
	a, b := j.needs(sampled, single), j.needs(2*sampled, single)
	return float64(a), float64(b-a) / sampled, a > 0 && b > a
}

// holds refuses a run that needs more memory than there is by a tenth or more, before it is rehearsed.
func (j *Job) holds(eng compute) error {
	limit := machineMemory()
	if limit == 0 || j.Wait > 0 || j.bare() {
		return nil
	}
	single, err := j.single(eng)
	if err != nil {
		return err
	}
	at, each, ok := j.slope(single)
	if needs := at + each*float64(j.Members-sampled); ok && needs > 1.1*float64(limit) {
		return j.tooLarge(int64(needs), single)
	}
	return nil
}

// tooLarge says how much memory a run needs, and what would fit.
func (j *Job) tooLarge(needs int64, single compute) error {
	limit, instead := machineMemory(), "take a smaller model or batch"
	if most := j.most(limit, single); most > 0 {
		instead = fmt.Sprintf("%d would fit", most)
	}
	return fmt.Errorf("a run with %d members needs about %s of memory, and this machine has %s: %s", j.Members, gib(needs), gib(limit), instead)
}

func gib(bytes int64) string { return fmt.Sprintf("%.3g GiB", float64(bytes)/(1<<30)) }

// most is the largest population below the present one that the algorithm takes and the memory holds, of thousands
// within some percent; 0 for none.
func (j *Job) most(limit int64, single compute) int {
	n := 0
	if at, each, ok := j.slope(single); ok {
		if n = int(0.97*(float64(limit)-at)/each) + sampled; n > j.Members-1 || n < sampled {
			n = 0
		}
	}
	if n == 0 {
		n = sort.Search(j.Members-1, func(i int) bool { return j.needs(i+1, single) > limit })
	}
	for ; n > 0; n-- {
		if _, err := coordinator.New(j.of(n).core()); err == nil {
			break
		}
	}
	return n
}

// needs predicts the memory of the job with so many members, in bytes; 0 for a number that the algorithm refuses.
func (j *Job) needs(members int, single compute) int64 {
	k := j.of(members)
	r, err := k.rehearse()
	if err != nil {
		return 0
	}
	return k.memory(r, single)
}

// of is the job with another number of members.
func (j *Job) of(members int) *Job {
	k := *j
	k.Members = members
	return &k
}
