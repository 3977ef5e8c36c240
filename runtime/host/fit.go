package host

import (
	"fmt"
	"sort"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"brood/optim"
	"brood/runtime/coordinator"
	"brood/runtime/option"
)

// Auto, as a number of members, requests a population that keeps all threads busy and fits into memory, see [Job.fill].
const Auto = option.Auto

const (
	// filling is the share of memory that an automatic population may take.
	filling = 0.8
	// candidates is the number of members per thread of an automatic population whose members are only evaluated: a
	// candidate is cheap, and more of them improve the estimate of the step.
	candidates = 16
)

// Memory returns the bytes of memory that this process may use: the lower limit of the machine and its control group.
// It returns 0 if they are unknown.
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

// fill chooses the size of an automatic population: one member per thread, or [candidates] if members are only
// evaluated. It takes more members if the algorithm needs them, and fewer if they do not fit into memory.
func (j *Job) fill(eng Engine) error {
	if j.Members != Auto {
		return nil
	}
	want := j.Threads
	if j.Alg.Needs&optim.Gradients == 0 && j.Alg.Needs.Model() {
		want *= candidates
	}
	var err error
	for j.Members = want; j.Members <= want+64; j.Members++ { // some algorithms need an even number, or at least a pair
		if _, err = coordinator.New(j.core()); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	single, err := j.single(eng)
	if err != nil {
		return err
	}
	if single != eng {
		defer Release(single)
	}
	if !memoryKnown(single) || j.share(j.Members, single) <= filling {
		return nil
	}
	if most := j.maxMembers(filling, single); most > 0 {
		j.Members = most
	}
	return nil
}

// sampled is the size of a population whose dry run takes a fraction of a second. The memory of larger ones is
// extrapolated linearly.
const sampled = 512

// need is the peak memory of a run in bytes: host memory, and memory of the device that it computes on.
type need struct{ host, device int64 }

// share returns the need as a share of the available memory, of the host or of the engine's device, whichever is
// larger. It returns 0 if neither limit is known.
func (n need) share(single Engine) (share float64) {
	if limit := machineMemory(); limit > 0 {
		share = float64(n.host) / float64(limit)
	}
	if _, limit := deviceOf(single); limit > 0 {
		share = max(share, float64(n.device)/float64(limit))
	}
	return share
}

// memoryKnown reports whether the memory limit of the host or of the engine's device is known.
func memoryKnown(single Engine) bool {
	_, limit := deviceOf(single)
	return limit > 0 || machineMemory() > 0
}

// deviceOf returns the name of the device on which the engine stores its memory, and the free bytes there. The name is
// "" for engines on the processor.
func deviceOf(e Engine) (name string, free int64) {
	if d, ok := e.(interface{ Device() (string, int64) }); ok {
		return d.Device()
	}
	return "", 0
}

// slope predicts the memory need from dry runs of two small populations, since a dry run of ten thousands of members
// takes many seconds. at is the need of [sampled] members, each the need of every further member. ok is false if the
// population is too small to save time, or if the algorithm rejects these sizes.
func (j *Job) slope(single Engine) (at, each need, ok bool) {
	if j.Members < 8*sampled {
		return at, each, false
	}
	at, ok = j.needs(sampled, single)
	two, more := j.needs(2*sampled, single)
	each = need{(two.host - at.host) / sampled, (two.device - at.device) / sampled}
	return at, each, ok && more && each.host >= 0 && each.device >= 0 && each != need{}
}

// plus returns at + n*each.
func (at need) plus(each need, n int) need {
	return need{at.host + int64(n)*each.host, at.device + int64(n)*each.device}
}

// checkMemory returns an error if the extrapolated need of a large population exceeds the available memory by more than
// 10%. It takes no dry run of the whole population. A run that waits for other workers is accepted: they share the
// need.
func (j *Job) checkMemory(single Engine) error {
	if j.Wait > 0 || j.Modelless() || !memoryKnown(single) {
		return nil
	}
	at, each, ok := j.slope(single)
	if needs := at.plus(each, j.Members-sampled); ok && needs.share(single) > 1.1 {
		return j.tooLarge(needs, single)
	}
	return nil
}

// tooLarge returns the error for a run that needs too much memory. It states the need, the limit and the largest
// population that fits.
func (j *Job) tooLarge(needs need, single Engine) error {
	instead := "take a smaller model or batch"
	if most := j.maxMembers(1, single); most > 0 {
		instead = fmt.Sprintf("%d would fit", most)
	}
	if name, free := deviceOf(single); free > 0 && needs.device > free {
		return fmt.Errorf("a run with %d members needs about %s of memory on %s, which has %s: %s",
			j.Members, gb(needs.device), name, gb(free), instead)
	}
	return fmt.Errorf("a run with %d members needs about %s of memory, and this machine has %s: %s",
		j.Members, gb(needs.host), gb(machineMemory()), instead)
}

// gb formats a number of bytes in GB with three digits, as screens and summaries do.
func gb(bytes int64) string {
	if x := float64(bytes) / 1e9; x < 100 {
		return fmt.Sprintf("%.3g GB", x)
	}
	return fmt.Sprintf("%.0f GB", float64(bytes)/1e9)
}

// maxMembers returns the largest population below the current one that the algorithm accepts and that needs at most
// this share of the memory; 0 if there is none. For thousands of members it extrapolates and may be a few percent too
// low.
func (j *Job) maxMembers(share float64, single Engine) int {
	n, fewer := 0, j.Members
	if at, each, ok := j.slope(single); ok {
		least := at.share(single)
		n = sort.Search(j.Members-1, func(i int) bool {
			return at.plus(each, i+1-sampled).share(single) > least+0.97*(share-least)
		})
		if n < sampled {
			n, fewer = 0, sampled
		}
	}
	if n == 0 {
		n = sort.Search(fewer-1, func(i int) bool { return j.share(j.largestAccepted(i+1), single) > share })
	}
	return j.largestAccepted(n)
}

// largestAccepted returns the largest population of at most n members that the algorithm accepts; 0 if there is none.
func (j *Job) largestAccepted(n int) int {
	for ; n > 0; n-- {
		if _, err := coordinator.New(j.withMembers(n).core()); err == nil {
			break
		}
	}
	return n
}

// share returns the memory share of the job with this number of members; 0 if the algorithm does not accept it.
func (j *Job) share(members int, single Engine) float64 {
	n, _ := j.needs(members, single)
	return n.share(single)
}

// needs predicts the memory of the job with this number of members. ok is false if the number is 0 or the algorithm
// does not accept it.
func (j *Job) needs(members int, single Engine) (n need, ok bool) {
	if j.largestAccepted(members) != members || members == 0 {
		return n, false
	}
	k := j.withMembers(members)
	k.metaOnly = true // sampling would take most of the time
	r, err := k.dryRun()
	if err != nil {
		return n, false
	}
	return k.memory(r, single), true
}

// withMembers returns a copy of the job with another number of members.
func (j *Job) withMembers(members int) *Job {
	k := *j
	k.Members = members
	return &k
}
