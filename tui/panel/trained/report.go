// Package trained has the panels that show what the trained model does: its errors on the test set, the positions of
// members in parameter space, and the last episode in an environment.
package trained

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/report"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/live"
	"brood/tui/textfmt"
)

// request is the state of panels that replace those of a screen to show the result of an expensive request.
type request[T any] struct {
	panel.Page
	panel.Query[T]
}

func newRequest[T any](name string, own, lead panel.ID) request[T] {
	return request[T]{panel.Page{Own: own, Lead: lead}, panel.Query[T]{Name: name}}
}

func (r *request[T]) reset() {
	r.Reset()
	r.Open = false
}

// back cancels a pending request; without one it returns to the screen.
func (r *request[T]) back(m *panel.Host) bool { return r.Cancel(m) || r.Close(m) }

// chosenRound returns the round of the cursor or of a recording, which it pauses; 0 and false without them.
func chosenRound(m *panel.Host) (at uint64, chosen bool) {
	if m.Replay != nil {
		m.Replay.Pause(true)
	}
	if m.Cursor.On || m.Replay != nil {
		return m.ForkRound(), true
	}
	return 0, false
}

// testReport is the state of the panels that replace the Live screen to show the errors of the model on the test set:
// the last report and the pending one.
type testReport struct {
	request[Examined]
}

// NewTestReport returns the state of the panels of errors on the test set.
func NewTestReport() *testReport {
	return &testReport{newRequest[Examined]("evaluation", panel.Classes, panel.Loss)}
}

// Panels returns the panels of classes, confusions and calibration.
func (e *testReport) Panels() []panel.Panel {
	const group = "mistakes of the model (w on Live)"
	keys := []panel.Binding{
		{Keys: []string{"w"}, Title: "back to the run", Do: e.Toggle},
		{Keys: []string{"enter"}, Title: "evaluate this round or checkpoint", Do: e.ask, Why: e.whyNot},
	}
	newPanel := func(id panel.ID, title func() string,
		draw func(g *cell.Grid, r cell.Rect, x *report.Report)) panel.Panel {
		return panel.Panel{
			ID: id, Group: group, Keys: keys, Back: e.back, Export: e.rows,
			Hints: func(*panel.Host) [][2]string {
				return [][2]string{{"enter", "evaluate"}, {"w", "back"}, {"←→", "round"}, {"E", "export"}}
			},
			Title: func(*panel.Host) (string, string) {
				return title(), e.Note("evaluating", func(x *Examined) uint64 { return x.Round })
			},
			Draw: func(m *panel.Host, g *cell.Grid, r cell.Rect) {
				if e.Result == nil || e.Result.Report == nil {
					panel.Explain(g, r, e.missing(m))
					return
				}
				draw(g, r, e.Result.Report)
			},
		}
	}
	classes := newPanel(panel.Classes, func() string {
		if e.Result != nil && e.Result.Report != nil && e.Result.Report.Outputs != nil {
			return "test set  by output"
		}
		return "test set  by class"
	}, drawClasses)
	classes.Reset = e.reset
	return []panel.Panel{
		classes,
		newPanel(panel.Confusion, func() string { return "test set  confusion matrix" }, drawConfusion),
		newPanel(panel.Calibration, func() string { return "test set  calibration" }, drawCalibration),
	}
}

// place lays out the Live screen.
func (e *testReport) place(m *panel.Host, b cell.Rect) []panel.Placement {
	switch {
	case !e.Open:
		return live.PlaceLive(m, b)
	case e.Result == nil || e.Result.Report == nil || e.Result.Report.Outputs != nil:
		return []panel.Placement{{Panel: panel.Classes, Area: b}}
	case e.Result.Report.Several != nil:
		top, low := b.Top((b.H + 1) / 2)
		return []panel.Placement{{Panel: panel.Classes, Area: top}, {Panel: panel.Calibration, Area: low}}
	}
	top, low := b.Top((b.H + 1) / 2)
	left, right := low.Left(low.W / 2)
	return []panel.Placement{{Panel: panel.Confusion, Area: top}, {Panel: panel.Classes, Area: left},
		{Panel: panel.Calibration, Area: right}}
}

// missing returns why there is nothing to show.
func (e *testReport) missing(m *panel.Host) string {
	switch {
	case e.Pending != nil:
		return "evaluating the model on the test set; esc cancels"
	case e.Err != nil:
		return e.Err.Error()
	case e.Result != nil:
		return fmt.Sprintf("after round %s the model's results are not finite", textfmt.Grouped(e.Result.Round))
	}
	if why := e.whyNot(m); why != "" {
		return why
	}
	return "enter evaluates the model on the test set, after the round of the newest checkpoint or of the cursor: " +
		"classes, confusion matrix and calibration. It takes processor time here."
}

// whyNot returns why the test set cannot be evaluated; "" if it can.
func (e *testReport) whyNot(m *panel.Host) string {
	_, able := m.Opt.Library.(Examiner)
	switch {
	case m.Opt.Source == nil:
		return panel.NoRunText
	case !able || m.Opt.Session == "":
		return "the session of this run is not on this machine: run `brood eval` where it is"
	case m.Shown.Config == nil || m.Shown.Config.Data == "" || m.Shown.Config.Maximises():
		return "this run has no test set: it trains no model on data"
	case e.Pending != nil:
		return "an evaluation is running: esc cancels"
	}
	return ""
}

func (e *testReport) ask(m *panel.Host) tea.Cmd {
	at, chosen := chosenRound(m)
	if chosen && at == 0 {
		m.Say(cell.Warn, "there is no trained model before the first round: go to a later one")
		return nil
	}
	lib, dir := m.Opt.Library.(Examiner), m.Opt.Session
	return e.Start(m, func(ctx context.Context, recomputed func(uint64)) (*Examined, error) {
		return lib.Examine(ctx, dir, at, recomputed)
	})
}

// rows returns for an export the classes, then the confusions, then the calibration bins; for a regression the
// outputs.
func (e *testReport) rows(*panel.Host) func(*view.View) panel.Rows {
	x := e.Result
	return func(*view.View) (out panel.Rows) {
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
		out = append(out, []string{"round", "class", "as", "from", "to", "samples", "precision", "recall", "f1",
			"confidence",
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
			out = append(out, []string{n, "", "", fmt.Sprint(b.From), fmt.Sprint(b.To), fmt.Sprint(b.Samples), "", "",
				"",
				fmt.Sprint(b.Confidence), fmt.Sprint(b.Right)})
		}
		return out
	}
}

// InsteadOfLive returns what replaces the panels of the Live screen: for an environment the last episode, otherwise
// the errors of the model.
func InsteadOfLive(exam *testReport, stage *EpisodePlayer) panel.Instead {
	return panel.Instead{
		Show: func(m *panel.Host) tea.Cmd {
			if m.Shown.Config.Environment() != "" {
				return stage.Toggle(m)
			}
			return exam.Toggle(m)
		},
		Place: func(m *panel.Host, b cell.Rect) []panel.Placement {
			if stage.Open {
				return []panel.Placement{{Panel: panel.Episode, Area: b}}
			}
			return exam.place(m, b)
		},
	}
}
