package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/models/data"
	"brood/models/subprocess"
	"brood/optim"
	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/panel"
)

// The launcher of the workbench builds the command line of `brood run` or `brood serve` from its form and starts it. It
// rejects the same requests as the command, with the same error texts.

// launcherOptions returns the options that have a line in the launcher, the most used first.
func launcherOptions() []*option.Option {
	return []*option.Option{option.Algorithm, option.Model, option.Data, option.Label, option.Members, option.Rounds,
		option.Epochs, option.For, option.Target, option.Seed, option.Augment, option.Workers, option.Wait,
		option.Threads, option.Device}
}

// wantsFleet reports whether a request waits for workers of other machines to train it.
func wantsFleet(r panel.Request) bool {
	n := r.Options[option.Wait.Name]
	return n != "" && n != "0"
}

// requestArgs returns the arguments of a request after `brood`: of run, or of serve for a fleet.
func requestArgs(r panel.Request, set []event.Setting) []string {
	out := []string{"run"}
	if wantsFleet(r) {
		out[0] = "serve"
	}
	if r.Preset != "" {
		out = append(out, r.Preset)
	}
	for _, x := range option.All {
		if text, ok := r.Options[x.Name]; ok && (x != option.Wait || wantsFleet(r)) {
			out = append(out, "--"+x.Name, text)
		}
	}
	for _, s := range set {
		out = append(out, "--set", s.Knob+"="+s.Expr)
	}
	return out
}

// shellLine returns the shell command of brood with these arguments.
func shellLine(words []string) string { return "brood " + subprocess.Quote(words...) }

// parsedRequest is a request parsed as a command line.
type parsedRequest struct {
	words  []string // after `brood`
	flags  *runFlags
	preset string
	order  host.Order
	alg    *optim.Algorithm
}

// parseRequest parses a request as `brood run` in a terminal would. It returns the words with an error too.
func parseRequest(r panel.Request) (w parsedRequest, err error) {
	name := ""
	if w, err = parseRun(requestArgs(r, nil)); err == nil {
		filled := w.order.Options
		if err = filled.Fill(); err == nil {
			name = filled.Algorithm
		}
	}
	w.words = requestArgs(r, r.Knobs[name])
	if err != nil {
		return w, err
	}
	if w, err = parseRun(w.words); err != nil {
		return w, err
	}
	w.alg, err = catalog.Lookup(name)
	return w, err
}

// parseRun parses words that begin with run or serve.
func parseRun(words []string) (w parsedRequest, err error) {
	w = parsedRequest{words: words, flags: &runFlags{detached: true}}
	root, c := &cobra.Command{Use: "brood"}, w.flags.command(streams{})
	check := func() error { return nil }
	if words[0] == "serve" {
		f, served := newServe(streams{}, nil)
		f.run.detached = true
		w.flags, c, check = &f.run, served, func() error { return f.check(served) }
	}
	root.AddCommand(c)
	if err := c.ParseFlags(words[1:]); err != nil {
		return w, flagError(c, err)
	}
	if err := check(); err != nil {
		return w, err
	}
	args := c.Flags().Args()
	if err := c.ValidateArgs(args); err != nil {
		return w, err
	}
	w.preset = strings.Join(args, "")
	w.order, err = w.flags.order(c, w.preset)
	return w, err
}

// Draft implements panel.Launcher.
func (l *sessionLibrary) Draft(r panel.Request) panel.Draft {
	d := draft(r)
	if d.Err != nil {
		d.At = blamedLine(r, d.Err, func(r panel.Request) error { return draft(r).Err })
	}
	return d
}

// draft returns a Draft without the line that caused an error.
func draft(r panel.Request) (d panel.Draft) {
	w, err := parseRequest(r)
	d.Command = shellLine(w.words)
	if err == nil {
		d.Knobs, err = w.knobs()
	}
	if err == nil {
		d.Lines, err = w.lines()
	}
	d.Limit, d.Err = w.order.Options.Limit, err
	return d
}

// knobs returns the knobs of the algorithm with the edits of the request and, for a protocol, the rules of the
// preset.
func (w parsedRequest) knobs() (*view.Knobs, error) {
	o, alg := w.order.Options, w.alg
	if alg.FromSpec != nil && o.Rules != nil {
		given, err := alg.FromSpec(o.Rules)
		if err != nil {
			return nil, err
		}
		alg = given
	}
	v := view.New()
	for _, e := range host.Edits(alg, o) {
		v.Edits = append(v.Edits, view.Edit{Edit: e})
	}
	line, _ := timeline.New(alg, nil)
	for _, e := range v.Edits {
		if err := line.Add(e.Edit); err != nil {
			return nil, err
		}
	}
	return v.Resolve(alg), nil
}

// lines returns the lines of the form with the values in effect. It fails for options that Fill or Check reject.
func (w parsedRequest) lines() (out []panel.FormLine, err error) {
	o := w.order.Options
	if err := o.Fill(); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	docs := map[string]string{option.Algorithm.Name: w.alg.Title + ": " + w.alg.Doc,
		option.Wait.Name: "number of workers of other machines to wait for and to train on; none: train on this " +
			"machine"}
	if w.alg.Needs.Model() && o.Model != "" {
		text, err := models.Source(o.Model)
		if err != nil {
			return nil, err
		}
		m, err := models.FromSource(o.Model, text)
		if err != nil {
			return nil, err
		}
		docs[option.Model.Name] = m.Doc
	}
	doc := "an experiment of `brood presets`, or a .toml file"
	preset := w.flags.presetOf(w.preset) // the default one if none is named
	if preset != "" {
		p, err := presets.Load(preset)
		if err != nil {
			return nil, err
		}
		doc = p.Title
	}
	out = append(out, panel.FormLine{Name: panel.PresetLine, Value: preset, Doc: doc, Words: presets.List(), Paths: true})
	for _, x := range launcherOptions() {
		f := panel.FormLine{Name: x.Name, Value: x.Text(o), Doc: cmp.Or(docs[x.Name], x.DocFor("run")), Paths: x.Paths}
		if offers := x.Completions(); offers != nil {
			f.Words = offers()
		}
		if x == option.Model {
			f.Words = models.Fitting(cmp.Or(o.Data, data.List()[0]))
		}
		out = append(out, f)
	}
	return out, nil
}

// blamedLine returns the line of a request that causes an error: the first one without which the error disappears or
// changes. validate returns the error of a request.
func blamedLine(r panel.Request, refusal error, validate func(panel.Request) error) (at panel.LineID) {
	cleared := func(without panel.Request) bool {
		err := validate(without)
		return err == nil || err.Error() != refusal.Error()
	}
	for alg, set := range r.Knobs {
		for _, s := range set {
			if at := (panel.LineID{Name: s.Knob, Knob: true}); cleared(r.Without(at, alg)) {
				return at
			}
		}
	}
	for _, x := range slices.Backward(option.All) {
		if _, ok := r.Options[x.Name]; ok && cleared(r.Without(panel.LineID{Name: x.Name}, "")) {
			return panel.LineID{Name: x.Name}
		}
	}
	if r.Preset != "" && r.Preset != presets.Default && cleared(r.Without(panel.LineID{Name: panel.PresetLine}, "")) {
		return panel.LineID{Name: panel.PresetLine}
	}
	return at
}

// Estimate implements panel.Launcher. A child process computes it: it can be killed at any time, and does not use the
// memory of the workbench.
func (l *sessionLibrary) Estimate(ctx context.Context, r panel.Request) (e panel.Estimate) {
	estimate := func(r panel.Request) (e panel.Estimate, err error) {
		w, err := parseRequest(r)
		if err != nil {
			return e, err
		}
		return estimateInChild(ctx, w.order)
	}
	e, e.Err = estimate(r)
	if e.Err == nil && len(r.Options)+len(r.Knobs) == 0 { // an unchanged preset
		e.Took = l.lib.Took(cmp.Or(r.Preset, presets.Default))
	}
	if e.Err != nil && ctx.Err() == nil {
		e.At = blamedLine(r, e.Err, func(r panel.Request) error { _, err := estimate(r); return err })
	}
	return e
}

// estimateInChild runs `brood run --rehearse` as a child process, which prepares the order and prints its needs. An
// error is the message of the child.
func estimateInChild(ctx context.Context, o host.Order) (e panel.Estimate, err error) {
	var text, stderr bytes.Buffer
	if err := o.Write(&text); err != nil {
		return e, err
	}
	self, err := os.Executable()
	if err != nil {
		return e, err
	}
	child := exec.CommandContext(ctx, self, "run", "--rehearse")
	child.Stdin, child.Stderr = &text, &stderr
	answer, err := child.Output()
	switch sentence := strings.TrimPrefix(strings.TrimSpace(stderr.String()), "brood: "); {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case err != nil && sentence != "":
		return e, errors.New(sentence)
	case err != nil:
		return e, err
	}
	return e, json.Unmarshal(answer, &e)
}

// writeEstimate is the child process of estimateInChild: it prepares the order on standard input, and prints the
// estimate as JSON without training.
func writeEstimate(s streams) error {
	o, err := host.ReadOrder(s.in)
	if err != nil {
		return err
	}
	e, err := estimateOf(o)
	if err != nil {
		return err
	}
	return objects(s.out, e)
}

// estimateOf returns the predicted needs of a new run.
func estimateOf(o host.Order) (e panel.Estimate, err error) {
	j, err := host.Prepare(o.Options)
	if err != nil {
		return e, err
	}
	return panel.Estimate{Model: j.Net.Name, Data: j.Config.Data, Members: j.Members, Parameters: j.Net.Layout.Params,
		Memory: j.Config.Memory, Device: j.DeviceMemory, Expected: j.Expected}, nil
}

// Begin implements panel.Launcher.
func (l *sessionLibrary) Begin(ctx context.Context, r panel.Request) (panel.Opened, error) {
	w, err := parseRequest(r)
	if err != nil {
		return panel.Opened{}, err
	}
	o := w.order.Options
	dir, keep, err := w.flags.place(cmp.Or(o.Preset, o.Algorithm))
	if err != nil {
		return panel.Opened{}, err
	}
	w.order.Dir = dir
	start := func() (*exec.Cmd, string, error) { return startDetached(w.order) }
	if wantsFleet(r) {
		start = func() (*exec.Cmd, string, error) { return serveDetached(w.words, w.order.Dir) }
	}
	run, err := startRun(ctx, w.order.Dir, keep, start, func(uint64) {})
	if err != nil {
		return panel.Opened{}, err
	}
	if wantsFleet(r) {
		run.Message = "waiting for workers: brood invite " + sessionArg(w.order.Dir) + " --role worker prints a join URL"
	}
	return l.opened(run, nil)
}

// serveDetached starts a child process that serves the run and records in dir. Its --on-trouble is wait, since a user
// watches the run. If the default port is taken, it listens on a free port, which its URLs contain.
func serveDetached(words []string, dir string) (*exec.Cmd, string, error) {
	words = append(slices.Clone(words), "--plain", "--session", dir, "--on-trouble", string(coordinator.OnTroubleWait))
	if c, err := net.ListenPacket("udp", servePort); err != nil {
		words = append(words, "--listen", ":0")
	} else if err := c.Close(); err != nil {
		return nil, "", err
	}
	return spawn(dir, nil, words...)
}
