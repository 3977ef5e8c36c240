package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
)

// The arguments of tools; fields without omitempty are required. A map holds JSON values as they were sent.
type (
	knobValues = map[string]json.RawMessage

	listArguments struct {
		Dir   string `json:"dir,omitempty"`
		Limit int    `json:"limit,omitempty"`
	}
	readArguments struct {
		Session string  `json:"session"`
		Round   uint64  `json:"round,omitempty"`
		Seconds float64 `json:"seconds,omitempty"`
	}
	chartArguments struct {
		Sessions []string `json:"sessions"`
		Series   []string `json:"series,omitempty"`
		By       string   `json:"by,omitempty"`
		Points   int      `json:"points,omitempty"`
		Size     string   `json:"size,omitempty"`
	}
	compareArguments struct {
		Sessions []string `json:"sessions"`
		Series   string   `json:"series,omitempty"`
		By       string   `json:"by,omitempty"`
	}
	verifyArguments struct {
		Session string  `json:"session"`
		Within  float64 `json:"within,omitempty"`
	}
	presetArguments struct {
		Preset string `json:"preset,omitempty"`
	}
	algorithmArguments struct {
		Algorithm string `json:"algorithm,omitempty"`
	}
	setArguments struct {
		Session string     `json:"session"`
		Set     knobValues `json:"set"`
		Why     string     `json:"why"`
	}
	controlArguments struct {
		Session string `json:"session"`
		Action  string `json:"action"`
		Why     string `json:"why"`
	}
	forkArguments struct {
		Session string     `json:"session"`
		At      uint64     `json:"at"`
		Set     knobValues `json:"set,omitempty"`
		Options knobValues `json:"options,omitempty"`
		Name    string     `json:"name,omitempty"`
		Why     string     `json:"why"`
	}
	startArguments struct {
		Preset  string     `json:"preset,omitempty"`
		Set     knobValues `json:"set,omitempty"`
		Options knobValues `json:"options,omitempty"`
		Name    string     `json:"name,omitempty"`
	}
	continueArguments struct {
		Session string     `json:"session"`
		Set     knobValues `json:"set,omitempty"`
		Options knobValues `json:"options,omitempty"`
	}
)

// argumentDocs describe the arguments of tools for agents, by key.
var argumentDocs = map[string]string{
	"action":    "pause, resume, save or stop",
	"algorithm": "name of an algorithm",
	"at":        "round of the session after which the fork starts, 1 or more",
	"by":        "horizontal axis: round, step, sample, epoch, byte or second (default round)",
	"dir":       "directory of a sweep or a study (default: all sessions of this user)",
	"limit":     "number of sessions, the newest first (default 30)",
	"name":      "name of the new session (default: one with the date)",
	"options": "options of the run, as the flags of brood run without dashes: rounds, seed, members, algorithm, model, " +
		"data and so on; of a fork or a continued run those that change, such as a new end in rounds",
	"points":   "points of each curve as numbers, 1 to 1000 (default 40)",
	"preset":   "name of a preset",
	"round":    "wait until a running run has done this round",
	"seconds":  "with round: wait at most this long (default 30, at most 600)",
	"series":   "series as read_run names them (default: the test score, else the loss)",
	"session":  "name, path or URL of a session",
	"sessions": "names or paths of sessions, or of a directory of sessions",
	"set": "knobs by name, with numbers, choices or schedules such as cosine:0.1..0.001@+200; set_knobs also takes " +
		"members for the population size and algorithm to swap it",
	"size":   "columns and rows of a chart (default 80x20)",
	"why":    "the reason, which is recorded: one line, at most 200 characters",
	"within": "compare saved parameters with this tolerance in place of hashes, such as 0.01",
}

// tools returns the tools in the order of docs/agents.md.
func (a *agent) tools() []agentTool {
	return []agentTool{
		toolOf("list_runs", "List recorded and running sessions, one JSON object a line.", false, a.list),
		toolOf("read_run", "Read a run: its state, parent, newest figures, knobs with bounds and docs, last edits with "+
			"their reasons, and last events. Can wait for a round.", false, a.read),
		toolOf("chart_runs", "Draw series of one or several runs as text, and give them as numbers.", false, a.chart),
		toolOf("compare_runs", "Compare runs: the settings in which they differ, their results with the best marked *, "+
			"and a curve of each.", false, a.compare),
		toolOf("verify_run", "Recompute a run and compare the hash of every commit. Takes as long as the training did.",
			false, a.verify),
		toolOf("list_presets", "List presets, or show one as TOML.", false, a.presets),
		toolOf("list_algorithms", "List algorithms, or show one with its knobs.", false, a.algorithms),
		toolOf("set_knobs", "Set knobs of a running run, as one transaction.", true, a.set),
		toolOf("control_run", "Pause, resume, save or stop a running run. A stopped run can be continued.", true,
			a.control),
		toolOf("fork_run", "Start a new run from a recorded round of another, with edits. The parent is not changed; the "+
			"fork records it.", true, a.fork),
		toolOf("start_run", "Start a new run in the background, from a preset.", true, a.start),
		toolOf("continue_run", "Continue a stopped, killed or finished run in the background.", true, a.resume),
	}
}

// command executes a command of brood in this process and returns its output, followed by its messages.
func (a *agent) command(ctx context.Context, args ...string) (string, error) {
	var out, messages bytes.Buffer
	err := execute(ctx, args, streams{out: &cleaned{&out}, err: &cleaned{&messages}})
	return out.String() + messages.String(), err
}

func (a *agent) list(ctx context.Context, in listArguments) (string, error) {
	if in.Limit < 0 {
		return "", usage("limit is %d: give 1 or more", in.Limit)
	}
	args := []string{"sessions", "--json", "--"}
	if in.Dir != "" {
		args = append(args, in.Dir)
	}
	text, err := a.command(ctx, args...)
	limit := cmp.Or(in.Limit, 30)
	lines := slices.Collect(strings.Lines(text))
	if len(lines) > limit {
		older := fmt.Sprintf("%d older sessions are not listed: give a larger limit\n", len(lines)-limit)
		lines = append(lines[:limit], older)
	}
	if err == nil && len(lines) == 0 {
		return "no sessions yet: start_run records one\n", nil
	}
	return strings.Join(lines, ""), err
}

func (a *agent) compare(ctx context.Context, in compareArguments) (string, error) {
	args := []string{"compare", "--by=" + cmp.Or(in.By, "round"), "--series=" + in.Series, "--"}
	return a.command(ctx, append(args, in.Sessions...)...)
}

func (a *agent) verify(ctx context.Context, in verifyArguments) (string, error) {
	args := append([]string{"verify", "--json"}, a.programOf(in.Session)...)
	if in.Within != 0 {
		args = append(args, "--within="+strconv.FormatFloat(in.Within, 'g', -1, 64))
	}
	return a.command(ctx, append(args, "--", in.Session)...)
}

func (a *agent) presets(ctx context.Context, in presetArguments) (string, error) {
	if in.Preset == "" {
		return a.command(ctx, "presets")
	}
	return a.command(ctx, "presets", "show", "--", in.Preset)
}

func (a *agent) algorithms(ctx context.Context, in algorithmArguments) (string, error) {
	if in.Algorithm == "" {
		return a.command(ctx, "algorithms")
	}
	return a.command(ctx, "algorithms", "--", in.Algorithm)
}

func (a *agent) set(ctx context.Context, in setArguments) (string, error) {
	settings, err := settingsOf(in.Set)
	if err != nil {
		return "", err
	}
	args := []string{"set", "--why=" + in.Why, "--as=" + a.as, "--take=" + strconv.FormatBool(a.take), "--",
		in.Session}
	for _, x := range settings {
		args = append(args, x.Knob+"="+x.Expr)
	}
	return a.command(ctx, args...)
}

func (a *agent) control(ctx context.Context, in controlArguments) (string, error) {
	action := event.Action(in.Action)
	switch action {
	case event.Pause, event.Resume, event.Save, event.Stop:
	default:
		return "", usage("action %q: give pause, resume, save or stop", in.Action)
	}
	var out bytes.Buffer
	err := send(ctx, in.Session, a.as, a.take, event.Command{Action: action, Why: in.Why}, streams{out: &cleaned{&out}})
	if action == event.Stop {
		return out.String(), err
	}
	return in.Action + ": accepted\n", err // the run acts at once: the round of the receipt has no meaning
}

func (a *agent) fork(ctx context.Context, in forkArguments) (string, error) {
	args := append([]string{"fork", "--background", "--at=" + strconv.FormatUint(in.At, 10), "--why=" + in.Why,
		"--as=" + a.as},
		a.programOf(in.Session)...)
	return a.train(ctx, args, in.Set, in.Options, in.Name, in.Session)
}

func (a *agent) start(ctx context.Context, in startArguments) (string, error) {
	return a.train(ctx, []string{"run", "--background"}, in.Set, in.Options, in.Name, in.Preset)
}

func (a *agent) resume(ctx context.Context, in continueArguments) (string, error) {
	args := append([]string{"run", "--background", "--resume=" + in.Session}, a.programOf(in.Session)...)
	return a.train(ctx, args, in.Set, in.Options, "", "")
}

// train executes a command that starts a run in the background, with knobs, options, the name of the new session and
// the argument of the command; "" omits these.
func (a *agent) train(
	ctx context.Context, args []string, set, options knobValues, name, argument string,
) (string, error) {
	settings, err := settingsOf(set)
	if err != nil {
		return "", err
	}
	for _, x := range settings {
		args = append(args, "--set="+x.Knob+"="+x.Expr)
	}
	flags, err := optionArguments(options)
	if err != nil {
		return "", err
	}
	args = append(args, flags...)
	if name != "" {
		if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
			return "", usage("name %q: give a name without slashes; the session is recorded among yours", name)
		}
		home, err := session.Home()
		if err != nil {
			return "", err
		}
		args = append(args, "--session="+filepath.Join(home, name))
	}
	if args = append(args, "--"); argument != "" {
		args = append(args, argument)
	}
	return a.command(ctx, args...)
}

// executing are the options whose values are commands of this machine. An agent cannot set them: a client may permit
// this server without permitting a shell.
var executing = []*option.Option{option.Objective, option.Program, option.OnAlert}

// optionArguments returns the flags of options of a run.
func optionArguments(options knobValues) (flags []string, err error) {
	var names []string
	for _, x := range option.All {
		if !slices.Contains(executing, x) {
			names = append(names, x.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch {
		case slices.ContainsFunc(executing, func(x *option.Option) bool { return x.Name == name }):
			return nil, usage("option %s executes a command on this machine: a person starts such a run", name)
		case !slices.Contains(names, name):
			return nil, usage("no option %q%s; options are %s", name, usererr.Suggest(name, names),
				strings.Join(names, ", "))
		}
		value := strings.TrimSpace(string(options[name]))
		if strings.HasPrefix(value, `"`) {
			if err := json.Unmarshal(options[name], &value); err != nil {
				return nil, err
			}
		} else if value == "null" || strings.ContainsAny(value, "[{") {
			return nil, usage("option %s: %s is not a value: give a number or a text", name, value)
		}
		flags = append(flags, "--"+name+"="+value)
	}
	return flags, nil
}

// programOf returns the flag with the program of the agent if the session has an objective or a program.
func (a *agent) programOf(what string) []string {
	if dir, err := resolve(what); err == nil && a.program != "" {
		if d := session.Describe(dir); d.Objective != "" || d.Program != "" {
			return []string{"--program=" + a.program}
		}
	}
	return nil
}

// Bounds of what read_run returns.
const (
	recentEdits  = 20
	recentEvents = 20
	longestWait  = 600 // seconds
)

func (a *agent) read(ctx context.Context, in readArguments) (string, error) {
	switch {
	case !(in.Seconds >= 0 && in.Seconds <= longestWait):
		return "", usage("seconds is %g: give up to %d", in.Seconds, longestWait)
	case in.Seconds > 0 && in.Round == 0:
		return "", usage("seconds is for waiting: give the round too")
	case in.Round > 0:
		wait := time.Duration(cmp.Or(in.Seconds, 30) * float64(time.Second))
		if err := a.await(ctx, in.Session, in.Round, wait); err != nil {
			return "", err
		}
	}
	v, name, running, err := a.state(ctx, in.Session)
	if err != nil {
		return "", err
	}
	line := snapshotObject(v, name)
	line["running"] = running
	edits, events := []any{}, []any{}
	for _, e := range v.Edits {
		if e.At > 0 || !e.FromSpec() { // knobs has the initial values
			edits = append(edits, editObject(e.Edit))
		}
	}
	edits = edits[max(0, len(edits)-recentEdits):]
	for _, e := range v.Lane {
		if e.Kind == view.KindCheckpoint { // too frequent, as on the screens
			continue
		}
		events = append(events, map[string]any{"round": e.Round, "level": e.Level, "kind": e.Kind, "text": e.Text})
	}
	line["edits"], line["events"] = edits, events[max(0, len(events)-recentEvents):]
	if notes := session.ReadAbout(name).Rounds; len(notes) > 0 {
		line["notes"] = notes
	}
	var out bytes.Buffer
	err = objects(&out, line)
	return out.String(), err
}

// connect connects to a running session, without being counted as a viewer on this machine.
func (a *agent) connect(ctx context.Context, what string) (runConn, error) {
	name := ""
	if strings.Contains(what, "://") {
		name = cmp.Or(a.as, clientName())
	}
	return connect(ctx, what, name, false)
}

// state returns the view of a session and its directory, or its address if it is on another machine: from the process
// of the run if it is running, else from its log.
func (a *agent) state(ctx context.Context, what string) (v *view.View, name string, running bool, err error) {
	run, err := a.connect(ctx, what)
	if err == nil {
		defer run.Close()
		v, err = run.Snapshot(ctx, 1<<62)
	}
	if err == nil || strings.Contains(what, "://") {
		return v, cmp.Or(run.dir, run.name), true, err
	}
	dir, err := resolve(what)
	if err != nil {
		return nil, "", false, err
	}
	r, err := openRecording(dir)
	if err != nil {
		return nil, "", false, err
	}
	defer r.Close()
	v, err = r.Source.Snapshot(ctx, 1<<62)
	return v, dir, false, err
}

// await returns when the run has done a round, is paused or over, or after a time. It does not wait for a session that
// is not running.
func (a *agent) await(ctx context.Context, what string, round uint64, most time.Duration) error {
	run, err := a.connect(ctx, what)
	if err != nil {
		return nil // state reports why
	}
	defer run.Close()
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	v, err := run.Snapshot(limited, 1<<62)
	for err == nil && v.Progress.Rounds < round && !v.Over() && v.State.Phase != event.Paused {
		var b view.Batch
		if b, err = run.Next(limited, v.Position, 1024); err == nil {
			for _, r := range b.Records {
				v.Apply(r)
			}
		}
	}
	if errors.Is(err, io.EOF) || ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return run.explain(err)
}
