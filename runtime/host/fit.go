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
	single, err := j.single(eng)
	if err != nil {
		return err
	}
	if single != eng {
		defer release(single)
	}
	if !limited(single) || j.share(j.Members, single) <= filling {
		return nil
	}
	if most := j.most(filling, single); most > 0 {
		j.Members = most
	}
	return nil
}

// sampled is a population that is rehearsed in no time; what larger ones need grows in proportion to it.
const sampled = 512

// need is what a run holds at most, in bytes: in this machine's memory, and in that of the device it computes on.
type need struct{ host, device int64 }

// share is how much of the memory that there is it takes, here or on the device of an engine, whichever is the fuller;
// 0 where nobody knows how much there is.
func (n need) share(single compute) (share float64) {
	if limit := machineMemory(); limit > 0 {
		share = float64(n.host) / float64(limit)
	}
	if _, limit := deviceOf(single); limit > 0 {
		share = max(share, float64(n.device)/float64(limit))
	}
	return share
}

// limited says whether anybody knows how much memory there is, here or on the device of an engine.
func limited(single compute) bool {
	_, limit := deviceOf(single)
	return limit > 0 || machineMemory() > 0
}

// deviceOf is the name of the device that an engine has its memory on, and the bytes that are free there; "" for none.
func deviceOf(e compute) (name string, free int64) {
	if d, ok := e.(interface{ Device() (string, int64) }); ok {
		return d.Device()
	}
	return "", 0
}

// slope predicts the need of memory from two rehearsals of few members: at sampled ones, and for each more. Of ten
// thousands of members a rehearsal takes many seconds. ok is false where there are too few members to save anything, or
// the algorithm refuses these numbers.
func (j *Job) slope(single compute) (at, each need, ok bool) {
	if j.Members < 8*sampled {
		return at, each, false
	}
	at, ok = j.needs(sampled, single)
	two, more := j.needs(2*sampled, single)
	each = need{(two.host - at.host) / sampled, (two.device - at.device) / sampled}
	return at, each, ok && more && each.host >= 0 && each.device >= 0 && each != need{}
}

// more is n times each beyond at.
func (at need) more(each need, n int) need {
	return need{at.host + int64(n)*each.host, at.device + int64(n)*each.device}
}

// holds refuses a run that needs more memory than there is by a tenth or more, before it is rehearsed.
func (j *Job) holds(eng compute) error {
	if j.Wait > 0 || j.modelless() {
		return nil
	}
	single, err := j.single(eng)
	if err != nil {
		return err
	}
	if single != eng {
		defer release(single)
	}
	if !limited(single) {
		return nil
	}
	at, each, ok := j.slope(single)
	if needs := at.more(each, j.Members-sampled); ok && needs.share(single) > 1.1 {
		return j.tooLarge(needs, single)
	}
	return nil
}

// tooLarge says how much memory a run needs, and what would fit.
func (j *Job) tooLarge(needs need, single compute) error {
	instead := "take a smaller model or batch"
	if most := j.most(1, single); most > 0 {
		instead = fmt.Sprintf("%d would fit", most)
	}
	if name, free := deviceOf(single); free > 0 && needs.device > free {
		return fmt.Errorf("a run with %d members needs about %s of memory on %s, which has %s: %s", j.Members, gb(needs.device), name, gb(free), instead)
	}
	return fmt.Errorf("a run with %d members needs about %s of memory, and this machine has %s: %s", j.Members, gb(needs.host), gb(machineMemory()), instead)
}

// gb is a size in the unit of screens and summaries.
func gb(bytes int64) string {
	if x := float64(bytes) / 1e9; x < 100 {
		return fmt.Sprintf("%.3g GB", x)
	}
	return fmt.Sprintf("%.0f GB", float64(bytes)/1e9)
}

// most is the largest population below the present one that the algorithm takes and that takes no more than this share
// of the memory, of thousands within some percent; 0 for none.
func (j *Job) most(share float64, single compute) int {
	n, fewer := 0, j.Members
	if at, each, ok := j.slope(single); ok {
		least := at.share(single)
		n = sort.Search(j.Members-1, func(i int) bool {
			return at.more(each, i+1-sampled).share(single) > least+0.97*(share-least)
		})
		if n < sampled {
			n, fewer = 0, sampled
		}
	}
	if n == 0 {
		n = sort.Search(fewer-1, func(i int) bool { return j.share(j.accepted(i+1), single) > share })
	}
	return j.accepted(n)
}

// accepted is the largest population of at most n that the algorithm takes; 0 for none.
func (j *Job) accepted(n int) int {
	for ; n > 0; n-- {
		if _, err := coordinator.New(j.of(n).core()); err == nil {
			break
		}
	}
	return n
}

// share is that of the job with so many members, a number that the algorithm takes; 0 for none.
func (j *Job) share(members int, single compute) float64 {
	n, _ := j.needs(members, single)
	return n.share(single)
}

// needs predicts the memory of the job with so many members, a number that the algorithm takes; ok is false for others
// and for none.
func (j *Job) needs(members int, single compute) (n need, ok bool) {
	if j.accepted(members) != members || members == 0 {
		return n, false
	}
	k := j.of(members)
	k.metaOnly = true // drawing samples would be nearly all of the time
	r, err := k.dryRun()
	if err != nil {
		return n, false
	}
	return k.memory(r, single), true
}

// of is the job with another number of members.
func (j *Job) of(members int) *Job {
	k := *j
	k.Members = members
	return &k
}
