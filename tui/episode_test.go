package tui

import (
	"testing"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel/trained"
)

// TestEpisode checks that w on Live shows the last episode of a run in an environment, and the mistakes of the model in
// other runs.
func TestEpisode(t *testing.T) {
	for env := range trained.EnvironmentDrawings {
		rs := sourcetest.Run(3, 60)
		for _, r := range rs {
			switch {
			case r.Config != nil:
				r.Config.Objective, r.Config.More = env, map[string]string{"env": env}
			case r.Evaluation != nil:
				r.Evaluation.Episode = &event.Episode{Seed: 1016, Return: -12, Steps: 2,
					States: []float32{0.1, 0, 0.1, 0, 0.2, 0, 0.2, 0, 0.3, 0, 0.3, 0}}
			}
		}
		d := open(t, 100, 30, rs, nil)
		d.shows("return of the centre")
		d.press("w")
		d.shows("episode 1016 of "+env+"  return -12.00", "2 steps", "w back")
		d.hides("return of the centre")
		d.press("w")
		d.shows("return of the centre")
		d.press("w", "esc")
		d.shows("return of the centre")
	}
	d := open(t, 100, 30, sourcetest.Run(3, 60), nil)
	d.press("w")
	d.hides("episode")
	d.shows("test set")
}

// TestNoEpisode checks the message for a missing episode.
func TestNoEpisode(t *testing.T) {
	rs := sourcetest.Run(3, 60)
	for _, r := range rs {
		if r.Config != nil {
			r.Config.Objective, r.Config.More = "cartpole", map[string]string{"env": "cartpole"}
		}
	}
	d := open(t, 100, 30, rs, nil)
	d.press("w")
	d.shows("no episode yet: each test records one of the policy")
}
