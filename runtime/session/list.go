package session

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"brood/runtime/event"
)

// Info is the summary of a session for lists. Its texts are as recorded: sanitize them before printing.
type Info struct {
	Name    string // of its directory
	Dir     string
	Running bool
	PID     int // of the writer, 0 when unknown or none

	Preset, Algorithm, Model, Data string
	Seed                           uint64
	Parent                         string // session that it was forked from, as in the log; "": none
	ParentAt                       uint64 // rounds of the parent before the fork

	Begins    uint64    // the log begins after this round, see [event.Beginning]; 0: it has all records
	Started   time.Time // time of the first record; if there is none, of the directory
	Program   string    // name of the program that trains its own model; "" if there is none
	Objective string    // name of the program of the objective; "" if the run trains a model
	Round     uint64    // rounds done
	Phase     event.Phase
	Score     *Scored // latest test score of the centre; nil before the first evaluation
	TestRound uint64  // round of Score
	Size      int64   // bytes of all files
	Err       string  // why it cannot be read, a sentence; "" if it can
	About     About   // annotations of the user
}

// State returns the state of the session as a word: its phase, or broken, empty, begins (it has no record yet) or
// killed.
func (x Info) State() string {
	going := x.Phase == event.Training || x.Phase == event.Waiting || x.Phase == event.Paused
	switch {
	case x.Err != "":
		return "broken"
	case x.Running && x.Phase == "":
		return "begins"
	case x.Phase == "": // it ended before its first round and cannot be resumed
		return "empty"
	case !x.Running && going:
		return "killed"
	case !going && !x.Phase.Over():
		return string(event.Waiting) // a phase of another version
	}
	return string(x.Phase)
}

// Scored is a score of a run, see [event.Score].
type Scored struct {
	Key, Title string
	Percent    bool
	More       bool // is better
	Value      float64
}

// ScoredOf returns the score of an evaluation.
func ScoredOf(c *event.Config, e *event.Evaluation) *Scored {
	s := c.Score()
	return &Scored{s.Key, s.Title, s.Percent, s.More, s.Of(e)}
}

// List returns the sessions in home, latest start first. A session that cannot be read is included with its error in
// Info.Err. The list is empty if home does not exist.
func List(home string) ([]Info, error) {
	all, err := Names(home)
	if err != nil {
		return nil, err
	}
	out := make([]Info, 0, len(all))
	for _, n := range all {
		out = append(out, Inspect(filepath.Join(home, n)))
	}
	Sort(out)
	return out, nil
}

// Sort sorts sessions in the order of [List].
func Sort(all []Info) {
	slices.SortStableFunc(all, func(a, b Info) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Name, a.Name))
	})
}

// Describe returns the summary of the session in dir. It reads only the head and the tail of the log.
func Describe(dir string) Info { return describe(dir, false) }

// Inspect is [Describe] and also verifies the checksums of the whole log.
func Inspect(dir string) Info { return describe(dir, true) }

func describe(dir string, whole bool) Info {
	x := Info{Name: filepath.Base(dir), Dir: dir}
	x.Running, x.PID = Running(dir)
	if st, err := os.Stat(dir); err == nil {
		x.Started = st.ModTime()
	}
	x.Size, x.About = Size(dir), ReadAbout(dir)
	if err := x.read(whole); err != nil {
		x.Err = err.Error()
	}
	return x
}

// read fills in the fields that come from the log. If whole is set, it also verifies the checksums of the whole log.
// After an error the fields that were already read remain set.
func (x *Info) read(whole bool) error {
	r, err := OpenReader(x.Dir)
	if err != nil {
		return err
	}
	defer r.Close()
	first, err := r.Next()
	if err == io.EOF && x.Running {
		return nil // for example a fork that is recomputing rounds of its parent
	}
	if err == io.EOF {
		return errors.New("session: the log is empty: the run ended before it began")
	}
	if err != nil {
		return err
	}
	x.Started = time.Unix(0, first.At)
	if c := first.Config; c != nil {
		x.Preset, x.Model, x.Data, x.Seed, x.Objective = c.Preset, c.ModelName(), c.Data, c.Seed, c.Objective
		x.Program, x.Parent, x.ParentAt = c.Program, c.Parent, c.ParentAt
		if c.Begins != nil {
			x.Begins = c.Begins.Round
		}
	}
	if err := r.refresh(); err != nil {
		return err
	}
	epoch := uint32(0)
	for _, want := range []event.Record{
		{Plan: &event.Plan{}},
		{Commit: &event.Commit{}},
		{State: &event.State{}},
		{Evaluation: &event.Evaluation{}},
	} {
		kind, _ := kindOf(want)
		rec, err := r.latest(kind)
		if err == io.EOF {
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case rec.Plan != nil:
			x.Algorithm, x.Round, epoch = rec.Plan.Algorithm, rec.Plan.At, rec.Plan.Epoch
		case rec.Commit != nil && rec.Commit.Epoch >= epoch: // an older commit may have been rolled back
			x.Round = rec.Commit.To
		case rec.State != nil:
			x.Phase = rec.State.Phase
		case rec.Evaluation != nil && rec.Evaluation.Round <= x.Round: // otherwise its round was rolled back
			x.TestRound, x.Score = rec.Evaluation.Round, ScoredOf(first.Config, rec.Evaluation)
		}
	}
	if whole {
		return r.sound()
	}
	return nil
}

// Removed returns the sentence about the removed records of the log in dir; "" if it has all or cannot be read.
func Removed(dir string) string {
	r, err := OpenReader(dir)
	if err != nil {
		return ""
	}
	defer r.Close()
	first, _ := r.Next()
	return first.Config.Removed()
}

// latest returns the last record of a kind, or io.EOF if there is none. It changes the position of the reader.
func (r *Reader) latest(kind int) (out event.Record, err error) {
	seg, _, h, err := r.last(kind, r.Records())
	if err != nil {
		return out, err
	}
	if seg == nil {
		return out, io.EOF
	}
	if err := r.Seek(h.first); err != nil {
		return out, err
	}
	err = io.EOF
	for range h.count {
		rec, e := r.Next()
		if e != nil {
			return out, e
		}
		if k, _ := kindOf(rec); k == kind {
			out, err = rec, nil
		}
	}
	return out, err
}

// Size returns the total bytes of all regular files below dir.
func Size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
			n += st.Size()
		}
		return nil
	})
	return n
}

// LogSize returns the size of the log in dir in bytes and its modification time; ok is false if there is no log.
func LogSize(dir string) (bytes int64, written time.Time, ok bool) {
	for n := uint32(1); ; {
		st, err := os.Stat(filepath.Join(dir, segmentName(n)))
		if err != nil {
			return bytes, written, n > 1
		}
		bytes, written = bytes+st.Size(), st.ModTime()
		if n++; n == 2 {
			n = secondSegment(dir)
		}
	}
}
