package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
)

// records returns the records in the log of dir.
func records(t *testing.T, dir string) (out []event.Record) {
	t.Helper()
	for rec, err := range session.Records(dir) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

// killed writes a session with these records, as a killed run leaves it, with the other files of session of.
func killed(t *testing.T, dir, of string, records []event.Record) {
	t.Helper()
	s, err := session.Create(dir)
	if err == nil {
		err = errors.Join(s.Append(records...), s.Close())
	}
	from := filepath.Join(of, session.CheckpointDir)
	if _, missing := os.Stat(from); err == nil && missing == nil {
		err = os.CopyFS(filepath.Join(dir, session.CheckpointDir), os.DirFS(from))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKilledBeforeTheFirstCommit: a fork or a new run that is killed before its first commit resumes to the hash of an
// uninterrupted one, wherever its log ends before that commit. The fork applies its initial edits, and the log has one
// configuration.
func TestKilledBeforeTheFirstCommit(t *testing.T) {
	home := t.TempDir()
	parent, branch := filepath.Join(home, "parent"), filepath.Join(home, "branch")
	parentHash := runOrder(t, Order{Dir: parent, Options: tiny(10)}, nil)
	branchHash := runOrder(t, Order{Dir: branch, From: parent, At: 7, Options: Options{By: "fork", Threads: 1,
		Set: []event.Setting{{Knob: "eta", Expr: "exp:0.01*(1-1/(2B))/cycle"}, {Knob: "ell", Expr: "3"}}}}, nil)
	for _, c := range []struct {
		name, dir, want string
	}{{"branch", branch, branchHash}, {"fresh", parent, parentHash}} {
		all := records(t, c.dir)
		planned, cuts := false, 0
		for n, rec := range all {
			if rec.Commit != nil {
				break
			}
			planned = planned || rec.Plan != nil || rec.Checkpoint != nil
			dir := filepath.Join(home, c.name+"-"+string(rune('a'+n)))
			killed(t, dir, c.dir, all[:n+1])
			if !planned {
				if _, err := (Order{Dir: dir, Resume: true}).Open(t.Context(), nil); err == nil ||
					!strings.Contains(err.Error(), "start a new run") {
					t.Errorf("%s after record %d of its log: %v, want advice to start a new run", c.name, n+1, err)
				}
				continue
			}
			cuts++
			// killed again before its first commit
			before := len(all[:n+1])
			again := dir + "-again"
			runOrder(t, Order{Dir: dir, Resume: true, Options: Options{Workers: 1, Threads: 1}}, nil)
			held := records(t, dir)
			for i := before; i < len(held) && held[i].Commit == nil; i++ {
				before = i + 1
			}
			killed(t, again, dir, held[:before])
			for _, dir := range []string{dir, again} {
				if dir == again {
					runOrder(t, Order{Dir: dir, Resume: true, Options: Options{Workers: 2, Threads: 1}}, nil)
				}
				v, err := Verify(t.Context(), dir, 1, nil)
				if err != nil || v.Last == nil || v.Last.Hash != c.want {
					t.Errorf("%s after record %d of its log: verify gives %+v, %v, want the hash %s of an uninterrupted run",
						filepath.Base(dir), n+1, v.Last, err, c.want)
				}
				configs := 0
				for _, rec := range records(t, dir) {
					if rec.Config != nil {
						configs++
					}
				}
				if configs != 1 {
					t.Errorf("%s has %d configurations in its log", filepath.Base(dir), configs)
				}
			}
		}
		if cuts == 0 {
			t.Errorf("%s was never killed between its first plan and its first commit", c.name)
		}
	}
}

// TestResumeReportsRecomputedRounds: a process that resumes a run without checkpoints reports each commit that it
// recomputes.
func TestResumeReportsRecomputedRounds(t *testing.T) {
	home := t.TempDir()
	parent, dir := filepath.Join(home, "parent"), filepath.Join(home, "killed")
	runOrder(t, Order{Dir: parent, Options: tiny(10)}, nil)
	killed(t, dir, parent, slices.DeleteFunc(records(t, parent), func(r event.Record) bool {
		return r.Checkpoint != nil || r.State != nil && r.State.Phase.Over()
	}))
	var last uint64
	resume := Order{Dir: dir, Resume: true, Options: Options{Limit: event.Limit{Rounds: 20}, Threads: 1}}
	r, err := resume.Open(t.Context(), func(k event.Commit) { last = k.To })
	if err != nil {
		t.Fatal(err)
	}
	if r.Session.Close(); last != 10 {
		t.Errorf("reported up to round %d, want 10", last)
	}
}
