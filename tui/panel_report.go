package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/report"
	"brood/runtime/view"
	"brood/tui/cell"
)

const (
	classesPanel     panelID = "classes"
	confusionPanel   panelID = "confusion"
	calibrationPanel panelID = "calibration"
)

// exam is the state of the panels that replace the Live screen to show the errors of the model on the test set: the
// last report and the pending one. An evaluation starts only on request: it takes processor time from a run on this
// machine.
type exam struct {
	open bool
	inquiry[Examined]
}

func newExam() *exam { return &exam{inquiry: inquiry[Examined]{name: "question"}} }

func (e *exam) panels() []panel {
	const group = "what the model gets wrong (w on Live)"
	keys := []binding{
		{keys: []string{"w"}, title: "back to the run", do: e.show},
		{keys: []string{"enter"}, title: "ask it now, or its checkpoint", do: e.ask, why: e.whyNot},
	}
	of := func(id panelID, title func() string, draw func(g *cell.Grid, r cell.Rect, x *report.Report)) panel {
		return panel{
			id: id, group: group, keys: keys, back: e.back, export: e.rows,
			hints: func(*model) [][2]string {
				return [][2]string{{"enter", "ask it"}, {"w", "back"}, {"←→", "round"}, {"E", "export"}}
			},
			title: func(*model) (string, string) { return title(), e.note() },
			draw: func(m *model, g *cell.Grid, r cell.Rect) {
				if e.got == nil || e.got.Report == nil {
					explain(g, r, e.missing(m))
					return
				}
				draw(g, r, e.got.Report)
			},
		}
	}
	classes := of(classesPanel, func() string {
		if e.got != nil && e.got.Report != nil && e.got.Report.Outputs != nil {
			return "test set  by output"
		}
		return "test set  by class"
	}, drawClasses)
	classes.reset = e.reset
	return []panel{
		classes,
		of(confusionPanel, func() string { return "test set  what is taken for what" }, drawConfusion),
		of(calibrationPanel, func() string { return "test set  can its probabilities be trusted" }, drawCalibration),
	}
}

// show toggles between these panels and those of the run.
func (e *exam) show(m *model) tea.Cmd {
	e.open = !e.open
	if m.focus = lossPanel; e.open {
		m.focus = classesPanel
	}
	return nil
}

// place lays out the Live screen.
func (e *exam) place(m *model, b cell.Rect) []placement {
	switch {
	case !e.open:
		return placeLive(m, b)
	case e.got == nil || e.got.Report == nil || e.got.Report.Outputs != nil:
		return []placement{{classesPanel, b}}
	case e.got.Report.Several != nil:
		top, low := b.Top((b.H + 1) / 2)
		return []placement{{classesPanel, top}, {calibrationPanel, low}}
	}
	top, low := b.Top((b.H + 1) / 2)
	left, right := low.Left(low.W / 2)
	return []placement{{confusionPanel, top}, {classesPanel, left}, {calibrationPanel, right}}
}

func (e *exam) reset() {
	e.forget()
	e.open = false
}

// note returns the round of the report, and the progress of the pending one.
func (e *exam) note() string {
	switch {
	case e.now != nil && e.now.done.Load() > 0:
		return "executing round " + round(e.now.done.Load())
	case e.now != nil:
		return "asking"
	case e.got != nil:
		return "round " + round(e.got.Round)
	}
	return ""
}

// missing returns why there is nothing to show.
func (e *exam) missing(m *model) string {
	switch {
	case e.now != nil:
		return "asking the model about every test sample; esc cancels"
	case e.err != nil:
		return e.err.Error()
	case e.got != nil:
		return fmt.Sprintf("after round %s the model's results are not finite", round(e.got.Round))
	}
	if why := e.whyNot(m); why != "" {
		return why
	}
	return "enter asks the model about the test set, after the round of the newest checkpoint or of the cursor: each class, what is taken for what, and whether probabilities can be trusted. It takes processor time here."
}

// whyNot returns why the test set cannot be evaluated; "" if it can.
func (e *exam) whyNot(m *model) string {
	_, able := m.opt.Library.(Examiner)
	switch {
	case m.opt.Source == nil:
		return noRun
	case !able || m.opt.Session == "":
		return "the session of this run is not on this machine: `brood eval` asks it where it is"
	case m.shown.Config == nil || m.shown.Config.Data == "" || m.shown.Config.Maximises():
		return "this run has no test set: it trains no model on data"
	case e.now != nil:
		return "it is being asked: esc cancels"
	}
	return ""
}

func (e *exam) ask(m *model) tea.Cmd {
	at := uint64(0)
	if m.replay != nil {
		m.replay.Pause(true)
	}
	if m.cursor.on || m.replay != nil {
		if at = m.here(); at == 0 {
			m.say(cell.Warn, "nothing is trained before the first round: go to a later one")
			return nil
		}
	}
	lib, dir := m.opt.Library.(Examiner), m.opt.Session
	return e.begin(m, func(ctx context.Context, recomputed func(uint64)) (*Examined, error) {
		return lib.Examine(ctx, dir, at, recomputed)
	})
}

// back cancels a pending evaluation; without one it returns to the run.
func (e *exam) back(m *model) bool {
	if e.giveUp(m) {
		return true
	}
	if e.open {
		e.show(m)
		return true
	}
	return false
}

// rows returns for an export the classes, then the confusions, then the calibration bins; for a regression the
// outputs.
func (e *exam) rows(*model) func(*view.View) rows {
	x := e.got
	return func(*view.View) (out rows) {
		if x == nil || x.Report == nil {
			return nil
		}
		n := fmt.Sprint(x.Round)
		if x.Report.Outputs != nil {
			out = append(out, []string{"round", "output", "rmse", "mae", "r2"})
			for _, o := range x.Report.Outputs {
				out = append(out, []string{n, o.Name, fmt.Sprint(o.RMSE), fmt.Sprint(o.MAE), fmt.Sprint(o.R2)})
			}
			return out
		}
		out = append(out, []string{"round", "class", "as", "from", "to", "samples", "precision", "recall", "f1", "confidence",
			"right"})
		for _, c := range x.Report.Classes {
			out = append(out, []string{n, c.Name, "", "", "", fmt.Sprint(c.Samples), fmt.Sprint(c.Precision),
				fmt.Sprint(c.Recall), fmt.Sprint(c.F1), "", ""})
		}
		for _, c := range x.Report.Confusion {
			out = append(out, []string{n, x.Report.Classes[c.Is].Name, x.Report.Classes[c.As].Name, "", "",
				fmt.Sprint(c.Samples), "", "", "", "", ""})
		}
		for _, b := range x.Report.Calibration.Bins {
			out = append(out, []string{n, "", "", fmt.Sprint(b.From), fmt.Sprint(b.To), fmt.Sprint(b.Samples), "", "", "",
				fmt.Sprint(b.Confidence), fmt.Sprint(b.Right)})
		}
		return out
	}
}
