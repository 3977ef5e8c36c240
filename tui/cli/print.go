package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/environment"
	"brood/runtime/archive"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/textfmt"
)

// printer writes the progress and the summary of a run in the foreground. Its methods may be called from several
// goroutines.
type printer interface {
	begin(p prepared)
	record(r event.Record)
	note(text string)
	// end prints the summary. ask evaluates the test set, which takes time outside the run; nil if there is none to
	// evaluate.
	end(exit coordinator.Exit, ask func() testReport)
}

func newPrinter(s streams, asJSON bool) printer {
	if asJSON {
		return newJSONPrinter(s)
	}
	return &plainPrinter{out: s.out, Tally: archive.NewTally()}
}

func newJSONPrinter(s streams) *jsonPrinter {
	return &jsonPrinter{out: s.out, err: s.err, Tally: archive.NewTally()}
}

type silentPrinter struct{}

func (silentPrinter) begin(prepared)                          {}
func (silentPrinter) record(event.Record)                     {}
func (silentPrinter) note(string)                             {}
func (silentPrinter) end(coordinator.Exit, func() testReport) {}

// jsonPrinter writes one JSON object a line, and notes to err.
type jsonPrinter struct {
	mu       sync.Mutex
	out, err io.Writer
	*archive.Tally
}

func (p *jsonPrinter) begin(r prepared) {
	p.Begin(r.job.Config, r.sess.Dir(), resumed(r.from))
	line := map[string]any{"event": "begin", "session": r.sess.Dir(), "algorithm": r.job.Alg.Name,
		"model": r.job.Config.ModelName(), "params": r.job.Net.Layout.Params, "data": r.job.Config.Data,
		"augment": r.job.Config.Augment, "members": r.job.Members, "workers": r.job.Workers,
		"memory_predicted": r.job.Config.Memory, "device_memory_predicted": r.job.DeviceMemory}
	for name, text := range r.job.Config.More {
		line[underscored(name)] = text
	}
	p.put(line)
	for _, text := range onStart(r.job) {
		p.note(text)
	}
}

func (p *jsonPrinter) put(v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = objects(p.out, v) // stdoutWriter records a failure
}

func (p *jsonPrinter) record(r event.Record) {
	p.Record(r)
	switch {
	case r.Points != nil:
		for i, m := range r.Points.Members {
			line := map[string]any{"event": "point", "round": r.Points.Round, "series": r.Points.Series,
				"value": finite(r.Points.Values[i])}
			if m != engine.None {
				line["member"] = m
			}
			p.put(line)
		}
	case r.Edit != nil:
		p.put(editObject(*r.Edit))
	case r.Alert != nil:
		line := map[string]any{"event": "alert", "round": r.Alert.Round, "level": r.Alert.Level, "kind": r.Alert.Kind,
			"text": r.Alert.Text}
		if r.Alert.Member != engine.None {
			line["member"] = r.Alert.Member
		}
		p.put(line)
	case r.Evaluation != nil:
		line := map[string]any{"event": "test", "round": r.Evaluation.Round, "centre_hash": r.Evaluation.Centre}
		if !p.Config.Maximises() {
			line["test_loss"] = finite(r.Evaluation.TestLoss)
		}
		scoresInto(line, &p.Config, r.Evaluation)
		p.put(line)
	case r.Plan != nil:
		line := map[string]any{"event": "plan", "round": r.Plan.At, "epoch": r.Plan.Epoch, "algorithm": r.Plan.Algorithm,
			"members": len(r.Plan.New.Members), "workers": len(r.Plan.New.Workers()), "cause": r.Plan.Cause}
		if r.Plan.Note != "" {
			line["note"] = r.Plan.Note
		}
		p.put(line)
	case r.State != nil:
		p.put(map[string]any{"event": "state", "round": r.State.Round, "phase": r.State.Phase, "reason": r.State.Reason})
	case r.Checkpoint != nil:
		p.put(map[string]any{"event": "checkpoint", "round": r.Checkpoint.Round})
	case r.Machines != nil:
		for _, m := range r.Machines.Of {
			line := map[string]any{"event": "machine", "round": r.Machines.Round, "worker": m.Worker}
			for _, of := range event.Measures {
				if x, ok := m.Values[of.Measure]; ok {
					line[string(of.Measure)] = finite(x)
				}
			}
			if len(m.To) > 0 {
				to := map[string]any{}
				for worker, x := range m.To {
					to[strconv.Itoa(worker)] = finite(x)
				}
				line["sent_to"] = to
			}
			p.put(line)
		}
	}
}

// editObject returns an edit of a knob as a JSON object.
func editObject(e event.Edit) map[string]any {
	line := map[string]any{"event": "edit", "round": e.First(), "algorithm": e.Algorithm, "knob": e.Knob, "value": e.Expr,
		"by": e.By}
	if e.Why != "" {
		line["why"] = e.Why
	}
	return line
}

// scoresInto adds the scores of the centre on the test set and on the validation samples.
func scoresInto(line map[string]any, c *event.Config, e *event.Evaluation) {
	for _, s := range c.Scores() {
		line[s.Key] = finite(s.Of(e))
	}
	if e.Validation != nil {
		for _, s := range c.ValidationScores() {
			line[s.Key] = finite(s.Of(e))
		}
	}
}

// firstHeld returns the score on the validation samples of the kind of the first test score; none if the evaluation has
// no validation samples.
func firstHeld(c *event.Config, e *event.Evaluation) []event.Score {
	if held := c.ValidationScores(); e.Validation != nil && len(held) > 0 {
		return held[:1]
	}
	return nil
}

// scoreText formats a score, with a percent sign if it is in percent.
func scoreText(s event.Score, x float64) string { return textfmt.ScoreText(x, s.Percent) }

// finite returns x, or nil, which JSON encodes as null, for NaN, infinities and values beyond ±1e308.
func finite(x float64) any {
	if x != x || x > 1e308 || x < -1e308 {
		return nil
	}
	return x
}

func (p *jsonPrinter) note(text string) { fmt.Fprintln(p.err, "brood: "+oneLine(text)) }

func (p *jsonPrinter) end(exit coordinator.Exit, ask func() testReport) {
	s := p.Finish(exit)
	if ask != nil {
		a := ask()
		if a.err != nil {
			p.note(fmt.Sprintf("the test set was not evaluated: %v", a.err))
		}
		if a.mixed != "" {
			p.note("the model was " + a.mixed)
		}
		s.TestReport = a.object()
	}
	p.put(s)
}

// plainPrinter writes a line about twice a second, for pipes, logs and screen readers.
type plainPrinter struct {
	mu   sync.Mutex
	out  io.Writer
	last time.Time
	held string // progress line, delayed since evaluations of earlier rounds arrive later; "" for none
	upTo uint64 // the round of the last progress line
	job  *host.Job

	waited time.Time  // when printWait last printed a line
	stage  view.Stage // stage in that line
	*archive.Tally
}

// line formats and writes one line. It removes line breaks from names.
func (p *plainPrinter) line(format string, args ...any) {
	fmt.Fprintln(p.out, oneLine(fmt.Sprintf(format, args...)))
}

func (p *plainPrinter) begin(r prepared) {
	p.Begin(r.job.Config, r.sess.Dir(), resumed(r.from))
	p.job = r.job
	j := r.job
	if j.Config.Data == "" {
		p.line("brood: %s, without a model: %s on %s", j.Alg.Title, textfmt.Count(j.Members, "member"),
			textfmt.Count(j.Workers, "worker"))
	} else {
		on := j.Config.Data
		if a := j.Config.Augment; a != "" {
			on += " with " + a
		}
		if j.Samples.Weighs() {
			on += ", class weights " + option.ClassWeights.Text(j.Options)
		}
		p.line("brood: %s on %s, %s: %s of %s parameters on %s, %s",
			j.Alg.Title, j.Net.Name, on, textfmt.Count(j.Members, "member"), textfmt.Grouped(j.Net.Layout.Params),
			textfmt.Count(j.Workers, "worker"), computing(j))
		for _, note := range j.Samples.Notes {
			p.line("brood: %s: %s", j.Config.Data, note)
		}
	}
	expected := textfmt.Size(j.Config.Memory) + " of memory"
	if j.DeviceMemory > 0 {
		expected += ", " + textfmt.Size(j.DeviceMemory) + " on the device"
	}
	where := r.sess.Dir()
	if by := listCommand(where); by != "" {
		where += ", which `" + by + "` lists"
	}
	p.line("brood: about %s; session %s", expected, where)
	for _, text := range onStart(j) {
		p.note(text)
	}
	switch {
	case r.from == nil:
	case r.from.Committed() != nil:
		p.line("brood: resumed after round %d, from its workers if they still hold that state", r.from.Checkpoint.Round)
	default:
		p.line("brood: resumed after round %d; %d rounds since the last checkpoint were recomputed and match",
			r.from.Checkpoint.Round, r.from.Executed)
	}
}

func (p *plainPrinter) record(r event.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := r.Evaluation; r.Points == nil && (e == nil || e.Round > p.upTo) {
		p.release()
	}
	p.Record(r)
	switch {
	case r.Commit != nil && time.Since(p.last) >= 500*time.Millisecond:
		p.last, p.upTo, p.held = time.Now(), r.Commit.To, p.progress(*r.Commit)
		time.AfterFunc(heldFor, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.upTo == r.Commit.To {
				p.release()
			}
		})
	case r.Evaluation != nil:
		var scores []string
		for _, s := range append(p.Config.Scores(), firstHeld(&p.Config, r.Evaluation)...) {
			scores = append(scores, s.Title+" "+scoreText(s, s.Of(r.Evaluation)))
		}
		p.line("round %6d  %s", r.Evaluation.Round, strings.Join(scores, ", "))
	case r.Alert != nil:
		p.line("round %6d  %s: %s", r.Alert.Round, r.Alert.Level, r.Alert.Text)
	case r.Edit != nil:
		p.line("round %6d  %s = %s from round %d on (%s)", p.Sum.Rounds, r.Edit.Knob, timeline.Text(*r.Edit), r.Edit.First(),
			r.Edit.Whose())
	case r.Plan != nil && r.Plan.Cause != event.CauseStart:
		text := fmt.Sprintf("%s: %s on %s", r.Plan.Cause, textfmt.Count(len(r.Plan.New.Members), "member"),
			textfmt.Count(len(r.Plan.New.Workers()), "worker"))
		if r.Plan.Note != "" {
			text += "; " + r.Plan.Note
		}
		p.line("round %6d  %s", r.Plan.At, text)
	case r.State != nil && r.State.Phase == event.Paused:
		p.line("round %6d  paused: %s", r.State.Round, r.State.Reason)
		if p.Sum.Session != "" {
			p.line("              fix the cause, then resume: brood attach %s", p.Sum.Session)
		}
	}
}

// computing describes the device or the threads and kernels of a job.
func computing(j *host.Job) string {
	switch {
	case j.Config.Kernels == arith.BF16:
		return textfmt.Count(j.Threads, "thread") + ", candidates in bf16"
	case j.Config.Kernels == arith.AMX:
		return textfmt.Count(j.Threads, "thread") + ", candidates in bf16 in the order of tiles"
	case !option.IsCPU(j.Device):
		return "device " + j.Device
	}
	return textfmt.Count(j.Threads, "thread")
}

// heldFor is the longest time that a progress line waits for an evaluation.
const heldFor = time.Second

// flush writes the delayed progress line. A command that follows a run calls it when it leaves before the end.
func (p *plainPrinter) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
}

// release writes the delayed progress line, if there is one. The caller holds p.mu.
func (p *plainPrinter) release() {
	if p.held != "" {
		fmt.Fprintln(p.out, p.held)
		p.held = ""
	}
}

func (p *plainPrinter) progress(c event.Commit) string {
	loss := "      –"
	word, x, ok := p.Shown()
	if ok {
		loss = fmt.Sprintf("%7s", textfmt.Number(x))
	}
	text := fmt.Sprintf("round %6d  epoch %6.2f  %s %s  %8s", c.To, c.Progress.Epochs, word, loss,
		rate(p.Tally, c.Progress))
	if left, ok := p.Left(c.Progress); ok {
		text += ", " + textfmt.Estimate(left) + " left"
	}
	return text
}

// rate formats the rate of the rounds that this process committed, up to the position at.
func rate(t *archive.Tally, at event.Progress) string {
	x, unit := t.Rate(at)
	return textfmt.Rate(x) + " " + unit
}

func (p *plainPrinter) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("brood: %s", text)
}

func (p *plainPrinter) end(exit coordinator.Exit, ask func() testReport) {
	s := p.Finish(exit)
	p.summarise(exit, s)
	if ask != nil && s.Rounds > 0 { // last, since the evaluation takes time
		ask().write(p.out, s.Session)
	}
}

func (p *plainPrinter) summarise(exit coordinator.Exit, s archive.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
	since := "" // the range of rounds that time and bytes cover
	if from := p.Before().Rounds; from > 0 {
		since = fmt.Sprintf(" since round %s", textfmt.Grouped(from))
	}
	fmt.Fprintf(p.out, "\n%s after %s rounds, %.2f epochs, %s%s: %s\n",
		exit.Phase, textfmt.Grouped(s.Rounds), s.Epochs, clockTime(s.Seconds), since, oneLine(exit.Reason))
	defer fmt.Fprintf(p.out, "  session      %s\n", s.Session)
	if s.Rounds == 0 {
		return // nothing was measured
	}
	if s.TrainLoss != nil && p.Bare() {
		fmt.Fprintf(p.out, "  distance     %s\n", textfmt.Number(*s.TrainLoss))
	} else if s.MeanFitness != nil {
		fmt.Fprintf(p.out, "  %-12s %s, of the last candidates\n", "mean "+p.Config.Fitness(), textfmt.Number(*s.MeanFitness))
	} else if s.TrainLoss != nil {
		of := ""
		if p.Candidates {
			of = ", of the last candidates"
		}
		fmt.Fprintf(p.out, "  train loss   %s%s\n", textfmt.Number(*s.TrainLoss), of)
	}
	for _, score := range p.Config.Scores() {
		if x := s.Scored(score.Key); x != nil {
			text := scoreText(score, *x)
			if *s.TestRound != s.Rounds || p.Config.Maximises() {
				text += fmt.Sprintf(", of round %d", *s.TestRound)
			}
			text += solved(&p.Config, *x)
			fmt.Fprintf(p.out, "  %-12s %s\n", score.Title, text)
		}
	}
	if e := p.Tested(); e != nil {
		for _, score := range firstHeld(&p.Config, e) {
			fmt.Fprintf(p.out, "  validation   %s %s\n", strings.TrimPrefix(score.Title, "validation "),
				scoreText(score, score.Of(e)))
		}
	}
	fmt.Fprintf(p.out, "  speed        %s\n", rate(p.Tally, event.Progress{Rounds: s.Rounds, Samples: s.Samples}))
	// without a network, workers only wait for cores of this process
	if percent := 100 * s.Waited; percent >= 1 && s.OverheadBytes > 0 {
		fmt.Fprintf(p.out, "  waiting      for others' frames %.0f %% of the time\n", percent)
	}
	for _, op := range slices.Sorted(maps.Keys(s.BytesSent)) {
		same := "= predicted"
		if s.BytesPredicted[op] != s.BytesSent[op] {
			same = "but predicted " + textfmt.Size(s.BytesPredicted[op])
		}
		fmt.Fprintf(p.out, "  %-12s %s%s %s\n", op, textfmt.Size(s.BytesSent[op]), since, same)
	}
	if s.Audits > 0 {
		fmt.Fprintf(p.out, "  audits       %s of rounds executed twice, all bits equal\n", textfmt.Count(s.Audits, "part"))
	}
	for _, text := range s.Restarts {
		fmt.Fprintf(p.out, "  restarts     %s\n", oneLine(text))
	}
	fmt.Fprintf(p.out, "  memory       %s, estimated %s\n", textfmt.Size(s.MemoryMeasured),
		textfmt.Size(s.MemoryPredicted))
	if p.job != nil && exit.Phase == event.Finished {
		printClaims(p.out, p.job, p.Tally, p.Metric)
	}
	fmt.Fprintf(p.out, "  state        %s\n", s.ParamsHash)
}

// solved returns a note on whether a mean return solves the environment of a run; "" without an environment.
func solved(c *event.Config, x float64) string {
	env, err := environment.Named(c.Environment())
	switch {
	case err != nil:
		return ""
	case x >= env.Solved:
		return fmt.Sprintf(": solved (threshold %g)", env.Solved)
	}
	return fmt.Sprintf(": not solved (threshold %g)", env.Solved)
}

// clockTime formats a duration: to 0.1 s, and below 1 s to 1 ms.
func clockTime(seconds float64) string {
	if seconds < 0.9995 {
		return fmt.Sprintf("%.0f ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// onStart returns the notes to print when a run begins: tensors of its initial model file that the model does not
// use, knobs of its preset that its algorithm does not take, and the notes of the job.
func onStart(j *host.Job) (notes []string) {
	if text := unusedTensors(j.Init, j.Spare); text != "" {
		notes = append(notes, text)
	}
	if j.Unused != "" {
		notes = append(notes, fmt.Sprintf("the preset sets knobs of %s, which are not used: %s starts from its defaults",
			j.Unused, j.Alg.Name))
	}
	return append(notes, j.Notes...)
}

// resumed returns the state of a restored run for its summary; nil for a new run.
func resumed(from *host.Restored) *archive.Resumed {
	if from == nil {
		return nil
	}
	return &archive.Resumed{Checkpoint: from.Checkpoint, Limit: from.Limit}
}
