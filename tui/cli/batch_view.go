package cli

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/sweep"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// batchView shows a batch: an animated view on a terminal, else one line for each finished run.
type batchView struct {
	b     *runs
	s     streams
	json  bool
	began time.Time
	prior float64       // completed work when this process began, see work
	mu    sync.Mutex    // guards tea and ended
	tea   *tea.Program  // nil without an animated view
	ended chan struct{} // closed when the animated view has ended; nil before it starts
	stop  func()        // ends the progress lines; nil unless they are printed
	drawn int           // table rows in the animated view; read after it has ended
}

func newBatchView(b *runs, plain, asJSON bool, s streams) *batchView {
	v := &batchView{b: b, s: s, json: asJSON}
	if s.terminal && !plain && !asJSON {
		v.tea = tea.NewProgram(batchModel{v: v, width: 80, height: 24}, tea.WithInput(nil), tea.WithOutput(s.screen),
			tea.WithoutSignalHandler())
	}
	return v
}

func (v *batchView) begin() {
	if v.json {
		v.b.Each(func(t *sweep.Trial) {
			if t.Over() {
				v.done(t)
			}
		})
	}
	v.began = time.Now()
	v.prior, _ = v.work()
	switch {
	case v.tea != nil:
		v.mu.Lock()
		v.ended = make(chan struct{})
		v.mu.Unlock()
		moving := v.tea // close sets v.tea to nil
		go func() { defer close(v.ended); _, _ = moving.Run() }()
	case !v.json:
		fmt.Fprintf(v.s.out, "brood: %s; sessions in %s\n", v.b.head, v.b.Dir)
		v.stop = every(progressPeriod, func(time.Time) { v.progress() })
	}
}

// note prints a message that belongs to no run.
func (v *batchView) note(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tea != nil && v.ended != nil { // the animated view is active
		v.tea.Println("brood: " + text)
		return
	}
	fmt.Fprintln(v.s.err, "brood: "+text)
}

func (v *batchView) join(url string) {
	if v.json {
		_ = objects(v.s.out, map[string]any{"event": "join", "url": url})
		return
	}
	fmt.Fprintf(v.s.out, "join: brood worker %s\n", url)
}

func (v *batchView) done(t *sweep.Trial) {
	switch {
	case v.json:
		line := map[string]any{"event": "run", "settings": v.b.Settings(t), "seed": t.Seed, "session": t.Dir,
			"diverged": t.State == sweep.Diverged, "failed": t.Failed != nil}
		if t.Rung > 0 {
			line["rung"] = t.Rung
		}
		for _, name := range presets.MetricNames() {
			if x, ok := t.Metric(name); ok && t.Over() {
				line[name] = finite(x)
			}
		}
		_ = objects(v.s.out, line)
	case v.tea != nil:
	case t.State == sweep.Diverged:
		fmt.Fprintf(v.s.out, "%s  %s: diverged after round %d\n", v.count(), t, t.Tally.Sum.Rounds)
	case t.State == sweep.Failed:
		fmt.Fprintf(v.s.out, "%s  %s: %s\n", v.count(), t, oneLine(t.Failed.Error()))
	default:
		by := cmp.Or(v.b.by, t.Tally.Config.Score().Key)
		figure := "no " + by
		if sweep.NeedsTarget(by) && t.Missed() {
			figure = "missed its target"
		} else if x, ok := t.Metric(by); ok {
			figure = by + " " + withUnit(x, by, t.Tally.Config)
		}
		fmt.Fprintf(v.s.out, "%s  %s: %s, %s\n", v.count(), t, figure, clockTime(t.Tally.Sum.Seconds))
	}
}

// close ends the animated view with its final state. A second call does nothing.
func (v *batchView) close() {
	v.mu.Lock()
	moving := v.tea
	v.tea = nil
	v.mu.Unlock()
	if moving != nil && v.ended != nil {
		moving.Send(finalFrame{})
		<-v.ended
	}
	if v.stop != nil {
		v.stop()
		v.stop = nil
	}
}

func (v *batchView) count() string {
	n, all := 0, len(v.b.Trials)
	v.b.Each(func(t *sweep.Trial) {
		if t.Over() {
			n++
		}
	})
	return fmt.Sprintf("%*d of %d", len(strconv.Itoa(all)), n, all)
}

// work returns the completed work of the trials, and the work of all trials. A trial of unknown work counts as the mean
// of the others.
func (v *batchView) work() (done, all float64) {
	mean, known := 0.0, 0.0
	for _, t := range v.b.Trials {
		if t.Work > 0 {
			mean, known = mean+t.Work, known+1
		}
	}
	mean /= max(known, 1)
	v.b.Each(func(t *sweep.Trial) {
		s := cmp.Or(t.Work, mean, 1)
		all += s
		switch {
		case t.Over():
			done += s
		case t.State == sweep.Runs && t.Tally != nil:
			done += s * t.Part()
		}
	})
	return done, all
}

// left returns how many runs are finished, and the estimated remaining time once it is known.
func (v *batchView) left(done, all float64) string {
	text := v.count()
	if spent := time.Since(v.began).Seconds(); done > v.prior && done < all && spent > 2 {
		text += ", about " + textfmt.Estimate((all-done)/(done-v.prior)*spent) + " left"
	}
	return text
}

// running is an active run: its completed fraction and its description.
type running struct {
	part float64
	text string
}

// active returns the active runs of this process, and the number of runs that other processes train.
func (v *batchView) active() (here []running, elsewhere int) {
	v.b.Each(func(t *sweep.Trial) {
		switch {
		case t.State == sweep.Elsewhere:
			elsewhere++
		case t.State == sweep.Runs && t.Tally != nil:
			text := fmt.Sprintf("%s, round %s", t, textfmt.Grouped(t.Tally.Sum.Rounds))
			if word, x, ok := t.Tally.Shown(); ok {
				text += ", " + word + " " + textfmt.Number(x)
			}
			if p := t.Tally.Phase; v.b.Wait > 0 && (p == "" || p == event.Waiting) {
				text = fmt.Sprintf("%s waits for %s", t, textfmt.Count(v.b.Wait, "worker"))
			}
			here = append(here, running{t.Part(), text})
		}
	})
	return here, elsewhere
}

func (v *batchView) progress() {
	text := v.left(v.work())
	if here, _ := v.active(); len(here) > 0 {
		text += "; " + here[0].text
	}
	fmt.Fprintln(v.s.err, "brood: "+text)
}

// progressPeriod is the time between progress lines.
const progressPeriod = 15 * time.Second

// withUnit formats a metric with the unit that it has in this configuration.
func withUnit(x float64, metric string, c event.Config) string {
	unit := c.Unit(presets.Metrics[metric])
	if unit == metric {
		unit = ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", x, unit))
}

// batchModel is the animated view. It reads no keys: Ctrl-C remains a signal.
type batchModel struct {
	v             *batchView
	width, height int
}

// finalFrame is the message that ends the animated view, tick the message that redraws it.
type (
	finalFrame struct{}
	tick       struct{}
)

func nextTick() tea.Cmd {
	return tea.Tick(250*time.Millisecond, func(time.Time) tea.Msg { return tick{} })
}

func (m batchModel) Init() tea.Cmd { return nextTick() }

func (m batchModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		return m, nextTick()
	case finalFrame:
		return m, tea.Quit
	}
	return m, nil
}

func (m batchModel) View() tea.View { return tea.NewView(m.v.draw(m.width, m.height)) }

// draw renders the view for a terminal of width by height cells: the progress, the active runs, and the best results.
func (v *batchView) draw(width, height int) string {
	done, all := v.work()
	here, elsewhere := v.active()
	here = here[:min(len(here), max(1, height/4))]
	rows := v.b.table(max(0, height-7-len(here))).lines()
	if v.drawn = len(rows) - 1; v.drawn == 0 { // headings only
		rows = nil
	}
	g := cell.New(width, 4+len(here)+len(rows))
	bar := min(30, width/3)
	g.Text(0, 0, width, cell.Title, v.b.head)
	meter := func(y int, part float64, role cell.Role) {
		g.Text(0, y, bar, cell.Border, strings.Repeat("─", bar))
		chart.Bar(g, 0, y, bar, part, role)
	}
	meter(1, done/all, cell.Centre)
	left := v.left(done, all)
	if elsewhere > 0 {
		left += fmt.Sprintf(", %d in other processes", elsewhere)
	}
	g.Text(bar+2, 1, width-bar-2, cell.Plain, left)
	y := 2
	for _, u := range here {
		meter(y, u.part, cell.Band)
		g.Text(bar+2, y, width-bar-2, cell.Faint, u.text)
		y++
	}
	y++
	for i, text := range rows {
		role := cell.Plain
		if i == 0 {
			role = cell.Faint
		}
		g.Text(0, y, width, role, text)
		y++
	}
	return cell.Coloured(true, panel.ASCIIOnly(os.Environ())).String(g)
}
