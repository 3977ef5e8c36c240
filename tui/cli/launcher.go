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
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/optim"
	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui"
)

// The workbench's launcher is the command line of `brood run` by other means: what a person says there becomes the
// words of that command, and what these words order is begun. It refuses what the command refuses, in its sentences.

// lines are the options that the launcher has a line for, those that are told most often first.
func lines() []*option.Option {
	return []*option.Option{option.Algorithm, option.Model, option.Data, option.Label, option.Members, option.Rounds,
		option.Epochs, option.For, option.Target, option.Seed, option.Augment, option.Workers, option.Wait, option.Threads, option.Device}
}

// fleetWanted says whether a request is to be trained by workers that join it.
func fleetWanted(r tui.Request) bool {
	n := r.Options[option.Wait.Name]
	return n != "" && n != "0"
}

// requested are the words of a request, behind `brood`: those of a run here, or of one that is served to others.
func requested(r tui.Request, set []event.Setting) []string {
	out := []string{"run"}
	if fleetWanted(r) {
		out[0] = "serve"
	}
	if r.Preset != "" {
		out = append(out, r.Preset)
	}
	for _, x := range option.All {
		if text, told := r.Options[x.Name]; told && (x != option.Wait || fleetWanted(r)) {
			out = append(out, "--"+x.Name, text)
		}
	}
	for _, s := range set {
		out = append(out, "--set", s.Knob+"="+s.Expr)
	}
	return out
}

// plain are words that no shell takes for anything else.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellLine writes words behind brood as a person would type them.
func shellLine(words []string) string { return "brood " + quoted(words) }

// quoted writes words so that a shell reads the same ones.
func quoted(words []string) string {
	var out []string
	for _, w := range words {
		if !plain.MatchString(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// wanted is a request as the command takes it.
type wanted struct {
	words  []string // behind `brood`
	flags  *runFlags
	preset string
	order  host.Order
	alg    *optim.Algorithm
}

// want reads a request as `brood run` in a terminal would. What it knows of the words goes with an error.
func want(r tui.Request) (w wanted, err error) {
	name := ""
	if w, err = parseRun(requested(r, nil)); err == nil {
		filled := w.order.Options
		if err = filled.Fill(); err == nil {
			name = filled.Algorithm
		}
	}
	w.words = requested(r, r.Knobs[name])
	if err != nil {
		return w, err
	}
	if w, err = parseRun(w.words); err != nil {
		return w, err
	}
	w.alg, err = catalog.Lookup(name)
	return w, err
}

// parseRun is the run that words order which begin with run, or with serve.
func parseRun(words []string) (w wanted, err error) {
	w = wanted{words: words, flags: &runFlags{detached: true}}
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

// Draft implements tui.Launcher.
func (l *shelf) Draft(r tui.Request) tui.Draft {
	d := draft(r)
	if d.Err != nil {
		d.At = blamed(r, d.Err, func(r tui.Request) error { return draft(r).Err })
	}
	return d
}

// draft is a Draft that blames no line.
func draft(r tui.Request) (d tui.Draft) {
	w, err := want(r)
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

// knobs are those of the algorithm as they will be, with the rules that a preset gives it.
func (w wanted) knobs() (*view.Knobs, error) {
	o, alg := w.order.Options, w.alg
	if alg.Given != nil && o.Rules != nil {
		given, err := alg.Given(o.Rules)
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

// lines are what the options come to.
func (w wanted) lines() (out []tui.FormLine, err error) {
	o := w.order.Options
	if err := o.Fill(); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	docs := map[string]string{option.Algorithm.Name: w.alg.Title + ": " + w.alg.Doc,
		option.Wait.Name: "workers of other machines that train it, and that it waits for; none: it trains here"}
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
	preset := w.flags.presetOf(w.preset) // of none that is said the default one
	if preset != "" {
		p, err := presets.Load(preset)
		if err != nil {
			return nil, err
		}
		doc = p.Title
	}
	out = append(out, tui.FormLine{Name: tui.PresetLine, Value: preset, Doc: doc, Words: presets.List(), Paths: true})
	for _, x := range lines() {
		f := tui.FormLine{Name: x.Name, Value: x.Text(o), Doc: cmp.Or(docs[x.Name], x.DocFor("run")), Paths: x.Paths}
		if offers := x.Offers(); offers != nil {
			f.Words = offers()
		}
		out = append(out, f)
	}
	return out, nil
}

// blamed is the line of a request that a refusal is of: the one without which it would not be.
func blamed(r tui.Request, refusal error, again func(tui.Request) error) (at tui.LineID) {
	cleared := func(without tui.Request) bool {
		err := again(without)
		return err == nil || err.Error() != refusal.Error()
	}
	for alg, set := range r.Knobs {
		for _, s := range set {
			if at := (tui.LineID{Name: s.Knob, Knob: true}); cleared(r.Without(at, alg)) {
				return at
			}
		}
	}
	for _, x := range slices.Backward(option.All) {
		if _, told := r.Options[x.Name]; told && cleared(r.Without(tui.LineID{Name: x.Name}, "")) {
			return tui.LineID{Name: x.Name}
		}
	}
	if r.Preset != "" && r.Preset != presets.Default && cleared(r.Without(tui.LineID{Name: tui.PresetLine}, "")) {
		return tui.LineID{Name: tui.PresetLine}
	}
	return at
}

// Estimate implements tui.Launcher. Another process works it out: it can be ended at any time, and its memory is not
// the workbench's.
func (l *shelf) Estimate(ctx context.Context, r tui.Request) (e tui.Estimate) {
	ask := func(r tui.Request) (e tui.Estimate, err error) {
		w, err := want(r)
		if err != nil {
			return e, err
		}
		return elsewhere(ctx, w.order)
	}
	e, e.Err = ask(r)
	if e.Err == nil && len(r.Options)+len(r.Knobs) == 0 { // the preset as it is
		e.Took = l.lib.Took(cmp.Or(r.Preset, presets.Default))
	}
	if e.Err != nil && ctx.Err() == nil {
		e.At = blamed(r, e.Err, func(r tui.Request) error { _, err := ask(r); return err })
	}
	return e
}

// elsewhere has another process of this binary prepare what is ordered, and say what it would need.
func elsewhere(ctx context.Context, o host.Order) (e tui.Estimate, err error) {
	var text, said bytes.Buffer
	if err := o.Write(&text); err != nil {
		return e, err
	}
	self, err := os.Executable()
	if err != nil {
		return e, err
	}
	child := exec.CommandContext(ctx, self, "run", "--rehearse")
	child.Stdin, child.Stderr = &text, &said
	answer, err := child.Output()
	switch sentence := strings.TrimPrefix(strings.TrimSpace(said.String()), "brood: "); {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case err != nil && sentence != "":
		return e, errors.New(sentence)
	case err != nil:
		return e, err
	}
	return e, json.Unmarshal(answer, &e)
}

// rehearsed answers elsewhere: it prepares what another process orders, and trains nothing.
func rehearsed(s streams) error {
	o, err := host.ReadOrder(s.in)
	if err != nil {
		return err
	}
	e, err := estimateOf(o)
	if err != nil {
		return err
	}
	return json.NewEncoder(exact(s.out)).Encode(e)
}

// estimateOf is what a new run would need.
func estimateOf(o host.Order) (e tui.Estimate, err error) {
	j, err := host.Prepare(o.Options)
	if err != nil {
		return e, err
	}
	return tui.Estimate{Model: j.Net.Name, Data: j.Config.Data, Members: j.Members, Parameters: j.Net.Layout.Params,
		Memory: j.Config.Memory, Device: j.DeviceMemory, Expected: j.Expected}, nil
}

// Begin implements tui.Launcher.
func (l *shelf) Begin(ctx context.Context, r tui.Request) (tui.Opened, error) {
	w, err := want(r)
	if err != nil {
		return tui.Opened{}, err
	}
	keep := existing(l.home)
	if w.order.Dir, err = w.flags.place(w.order.Options); err != nil {
		return tui.Opened{}, err
	}
	start := func() (*exec.Cmd, string, error) { return startDetached(w.order) }
	if fleetWanted(r) {
		start = func() (*exec.Cmd, string, error) { return serveDetached(w.words, w.order.Dir) }
	}
	run, err := freshRun(ctx, w.order.Dir, keep, start, func(uint64) {})
	if err != nil {
		return tui.Opened{}, err
	}
	if fleetWanted(r) {
		run.Said = "it waits for workers: brood invite " + called(w.order.Dir) + " --role worker prints how one joins"
	}
	return l.went(run), nil
}

// serveDetached serves what words order as a process of its own, which records in dir. A person looks at it, so that it
// waits in trouble; where another is served by the usual port already, it takes one that is free, which its URLs name.
func serveDetached(words []string, dir string) (*exec.Cmd, string, error) {
	words = append(slices.Clone(words), "--plain", "--session", dir, "--on-trouble", string(coordinator.OnTroubleWait))
	if c, err := net.ListenPacket("udp", servePort); err != nil {
		words = append(words, "--listen", ":0")
	} else if err := c.Close(); err != nil {
		return nil, "", err
	}
	return spawn(dir, nil, words...)
}
