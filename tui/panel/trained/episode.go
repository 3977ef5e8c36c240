package trained

import (
	"fmt"
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// statesPerTick is the number of states by which an episode advances at each tick of the clock, every 500 ms.
const statesPerTick = 3

// EpisodePlayer is the state of the panel that plays the last recorded episode of a run in an environment, in a loop.
type EpisodePlayer struct {
	panel.Page
	frame int
}

// NewEpisodePlayer returns the state of the panel of the episode.
func NewEpisodePlayer() *EpisodePlayer {
	return &EpisodePlayer{Page: panel.Page{Own: panel.Episode, Lead: panel.Loss}}
}

// Panel returns the panel of the episode.
func (s *EpisodePlayer) Panel() panel.Panel {
	return panel.Panel{
		ID:    panel.Episode,
		Group: "episode of the policy (w on Live)",
		Keys:  []panel.Binding{{Keys: []string{"w"}, Title: "back to the run", Do: s.Toggle}},
		Title: s.title,
		Draw:  s.draw,
		Hints: func(*panel.Host) [][2]string { return [][2]string{{"w", "back"}, {"←→", "round"}} },
		Back:  s.Close,
		Reset: func() { *s = *NewEpisodePlayer() },
		Poll: func(*panel.Host) tea.Cmd {
			s.frame += statesPerTick
			return nil
		},
	}
}

func (s *EpisodePlayer) title(m *panel.Host) (string, string) {
	e := m.Shown.Evaluation
	if e == nil || e.Episode == nil {
		return "episode", ""
	}
	return fmt.Sprintf("episode %d of %s  return %s", e.Episode.Seed, m.Shown.Config.Environment(),
			textfmt.Number(e.Episode.Return)),
		fmt.Sprintf("%d steps · round %s", e.Episode.Steps, textfmt.Grouped(e.Round))
}

func (s *EpisodePlayer) draw(m *panel.Host, g *cell.Grid, r cell.Rect) {
	e := m.Shown.Evaluation
	if e == nil || e.Episode == nil || len(e.Episode.States) == 0 {
		panel.Explain(g, r, "no episode yet: each test records one of the policy")
		return
	}
	const pause = 4 // the last state is shown for this many more states
	n := len(e.Episode.States) / event.EpisodeWidth
	at := min(s.frame%(n+pause), n-1)
	state := [event.EpisodeWidth]float64{}
	for i, x := range e.Episode.States[at*event.EpisodeWidth : (at+1)*event.EpisodeWidth] {
		state[i] = float64(x)
	}
	sketch := chart.NewSketch(r.W, r.H)
	if draw := EnvironmentDrawings[m.Shown.Config.Environment()]; draw != nil {
		draw(sketch, state)
	}
	sketch.Draw(g, r, m.Opt.ASCII)
}

// EnvironmentDrawings has for each environment the function that draws a state.
var EnvironmentDrawings = map[string]func(*chart.Sketch, [event.EpisodeWidth]float64){
	"cartpole":    drawCartpole,
	"pendulum":    drawPendulum,
	"acrobot":     drawAcrobot,
	"mountaincar": drawMountaincar,
}

// drawCartpole draws the track of 2.4 m to each side, the cart, and the pole of 1 m.
func drawCartpole(s *chart.Sketch, at [4]float64) {
	const metre = 1 / 2.6
	ground := -s.Top() * 0.6
	s.Line(-2.4*metre, ground, 2.4*metre, ground, cell.Faint, '-')
	x, w, h := at[0]*metre, 0.2*metre, 0.2*metre
	for _, y := range []float64{ground, ground + h} {
		s.Line(x-w, y, x+w, y, cell.Centre, '=')
	}
	s.Line(x-w, ground, x-w, ground+h, cell.Centre, '|')
	s.Line(x+w, ground, x+w, ground+h, cell.Centre, '|')
	long := min(metre, s.Top()-ground-h)
	s.Line(x, ground+h, x+long*math.Sin(at[2]), ground+h+long*math.Cos(at[2]), cell.Member, 'o')
}

// drawPendulum draws the rod and its joint; the angle is 0 upright.
func drawPendulum(s *chart.Sketch, at [4]float64) {
	long := 0.9 * min(1, s.Top())
	s.Line(-0.05, 0, 0.05, 0, cell.Faint, '+')
	s.Line(0, 0, -long*math.Sin(at[0]), long*math.Cos(at[0]), cell.Centre, 'o')
}

// drawAcrobot draws the two links and the height that the free end has to reach; angles are 0 hanging down.
func drawAcrobot(s *chart.Sketch, at [4]float64) {
	long := 0.48 * min(1, s.Top())
	s.Line(-1, long, 1, long, cell.Faint, '-')
	x, y := long*math.Sin(at[0]), -long*math.Cos(at[0])
	s.Line(0, 0, x, y, cell.Centre, 'o')
	s.Line(x, y, x+long*math.Sin(at[0]+at[1]), y-long*math.Cos(at[0]+at[1]), cell.Member, '*')
}

// drawMountaincar draws the hill, the goal and the car.
func drawMountaincar(s *chart.Sketch, at [4]float64) {
	place := func(x float64) (float64, float64) {
		return (x + 0.3) / 0.95, 0.7 * min(1, s.Top()) * math.Sin(3*x)
	}
	x0, y0 := place(-1.2)
	for i := range 60 {
		x1, y1 := place(-1.2 + 1.8*float64(i+1)/60)
		s.Line(x0, y0, x1, y1, cell.Faint, '.')
		x0, y0 = x1, y1
	}
	x, y := place(0.45)
	s.Line(x, y, x, y+0.15, cell.Good, 'F')
	x, y = place(at[0])
	for _, up := range []float64{0.03, 0.06} {
		s.Line(x-0.04, y+up, x+0.04, y+up, cell.Centre, '#')
	}
}
