package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"time"

	"brood/runtime/archive"

	"brood/runtime/event"
	"brood/runtime/session"
)

// railRun is the JSON object for a run in the output of `brood sessions --rail`, one a line: what the list of runs
// shows. NaN and infinite figures are null.
type railRun struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Bytes   int64     `json:"bytes"`
	Written time.Time `json:"written"`
	Running bool      `json:"running,omitempty"`

	Preset    string          `json:"preset,omitempty"`
	Algorithm string          `json:"algorithm,omitempty"`
	Model     string          `json:"model,omitempty"`
	Data      string          `json:"data,omitempty"`
	Objective string          `json:"objective,omitempty"`
	Seed      uint64          `json:"seed"`
	Started   time.Time       `json:"started"`
	Round     uint64          `json:"round"`
	Phase     event.Phase     `json:"phase,omitempty"`
	Score     *session.Scored `json:"score,omitempty"`
	TestRound uint64          `json:"test_round,omitempty"`
	Size      int64           `json:"size"`
	Err       string          `json:"error,omitempty"`
	About     session.About   `json:"about"`
	Parent    string          `json:"parent,omitempty"`
	Members   int             `json:"members,omitempty"`
	Series    string          `json:"series,omitempty"`
	Loss      *float64        `json:"loss,omitempty"`
	Curve     []*float64      `json:"curve,omitempty"`
	Seconds   float64         `json:"seconds,omitempty"`

	Settings []archive.Setting  `json:"settings,omitempty"` // without those at their default, which are most
	Figures  map[string]float64 `json:"figures,omitempty"`
}

const (
	railVersion = 1
	maxRailRuns = 10_000   // accepted from another machine
	maxRailSize = 16 << 20 // accepted from another machine, in bytes
)

// toNumber returns nil, null in JSON, for NaN and infinity. fromNumber is its inverse and returns NaN for nil.
func toNumber(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func fromNumber(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// railOf returns the object that describes a run of this machine.
func railOf(e archive.Entry, s archive.Summary) railRun {
	r := railRun{
		Version:   railVersion,
		Name:      e.Name,
		Bytes:     e.Bytes,
		Written:   e.Written,
		Running:   e.Running,
		Preset:    s.Preset,
		Algorithm: s.Algorithm,
		Model:     s.Model,
		Data:      s.Data,
		Objective: s.Objective,
		Seed:      s.Seed,
		Started:   s.Started,
		Round:     s.Round,
		Phase:     s.Phase,
		Score:     s.Score,
		TestRound: s.TestRound,
		Size:      s.Size,
		Err:       s.Err,
		About:     s.About,
		Parent:    s.Parent,
		Members:   s.Members,
		Series:    s.Series,
		Loss:      toNumber(s.Loss),
		Seconds:   s.Seconds,
		Figures:   maps.Clone(s.Figures),
	}
	for _, x := range s.Settings {
		if !x.Default {
			r.Settings = append(r.Settings, x)
		}
	}
	maps.DeleteFunc(r.Figures, func(_ string, x float64) bool { return toNumber(x) == nil })
	if r.Score != nil && toNumber(r.Score.Value) == nil { // JSON has no such number, and it cannot be ranked
		r.Score = nil
	}
	for _, x := range s.Curve {
		r.Curve = append(r.Curve, toNumber(x))
	}
	return r
}

// writeRail writes the runs of this machine, one JSON object a line. It omits runs in folders, which belong to sweeps
// and studies.
func writeRail(w io.Writer, lib *archive.Library, home string) error {
	entries, err := lib.Scan(home)
	if err != nil {
		return err
	}
	out := json.NewEncoder(exact(w))
	for _, e := range entries {
		if e.Folder != "" {
			continue
		}
		if err := out.Encode(railOf(e, lib.Summary(e))); err != nil {
			return err
		}
	}
	return lib.Save()
}

// isRailName reports whether the name of a session is accepted from another machine. The pattern does not count, since
// one that does takes long to compile.
func isRailName(name string) bool { return len(name) <= 128 && railName.MatchString(name) }

var railName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+=@-]*$`)

// readRail reads the output of [writeRail] from another machine, which is untrusted: it skips runs with invalid names
// or sizes, and fails on too much data, on text that is not JSON and on another version. host becomes part of the
// directory names. sums is keyed by these names.
func readRail(r io.Reader, host string) (entries []archive.Entry, sums map[string]archive.Summary, err error) {
	limited := &io.LimitedReader{R: r, N: maxRailSize}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, 256<<10)
	sums = map[string]archive.Summary{}
	for lines.Scan() {
		var x railRun
		if limited.N == 0 {
			break
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			return nil, nil, fmt.Errorf("the answer is not a list of runs: %.60q", lines.Text())
		}
		switch {
		case x.Version != railVersion:
			return nil, nil, errors.New("its brood uses another format for runs: use one version on both machines")
		case len(entries) == maxRailRuns:
			return nil, nil, fmt.Errorf("it has more than %d runs: prune some there", maxRailRuns)
		case !isRailName(x.Name) || x.Bytes < 0 || x.Size < 0 || x.Members < 0 || len(x.Curve) > archive.CurvePoints ||
			x.About.Check() != nil:
			continue
		}
		e := archive.Entry{
			Name:    x.Name,
			Dir:     sshScheme + host + "/" + x.Name,
			Host:    host,
			Bytes:   x.Bytes,
			Written: x.Written,
			Running: x.Running,
		}
		s := archive.Summary{
			Info: session.Info{
				Name:      x.Name,
				Dir:       e.Dir,
				Running:   x.Running,
				Preset:    x.Preset,
				Algorithm: x.Algorithm,
				Model:     x.Model,
				Data:      x.Data,
				Objective: x.Objective,
				Seed:      x.Seed,
				Started:   x.Started,
				Round:     x.Round,
				Phase:     x.Phase,
				Score:     x.Score,
				TestRound: x.TestRound,
				Size:      x.Size,
				Err:       x.Err,
				About:     x.About,
				Parent:    x.Parent,
			},
			Members:  x.Members,
			Series:   x.Series,
			Loss:     fromNumber(x.Loss),
			Seconds:  x.Seconds,
			Settings: x.Settings,
			Figures:  x.Figures,
		}
		for _, v := range x.Curve {
			s.Curve = append(s.Curve, fromNumber(v))
		}
		entries, sums[e.Dir] = append(entries, e), s
	}
	switch {
	case limited.N == 0:
		return nil, nil, fmt.Errorf("its list of runs is larger than %d MB: prune some runs there", maxRailSize>>20)
	case lines.Err() != nil:
		return nil, nil, fmt.Errorf("read its list of runs: %w", lines.Err())
	}
	archive.SortEntries(entries)
	return entries, sums, nil
}
