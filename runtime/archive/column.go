package archive

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"brood/runtime/option"
	"brood/runtime/view"
)

// Row is a run or a folder in a list.
type Row struct {
	Entry
	*Summary // nil until it is read
}

// Unknown reports whether the row is a host that has not answered, or not recently.
func (r Row) Unknown() bool { return r.Asked && r.Summary != nil && r.Err != "" }

// Column is a column of a list of runs. The workbench, `brood sessions` and a [Query] use the same ones.
type Column struct {
	Name     string // in queries and settings: one word
	Title    string // heading; queries accept it too
	Doc      string
	Priority int  // a table that is too narrow drops columns of least priority first
	Right    bool // aligned to the right
	Extra    bool // shown only if the user chooses it

	// Text returns the text of a run; "" for none. It needs a summary, as the functions below.
	Text func(Row) string
	// Number returns the value that queries compare, NaN for none; nil: they compare the text. Parse returns the number
	// of a value in a query; nil: a decimal number.
	Number func(Row) float64
	Parse  func(value string) (float64, bool)
	// Prefix reports whether a value is the beginning of a text whose order is that of its values, such as a date; nil:
	// the text has no order.
	Prefix func(value string) bool
	Form   string // describes values, for errors; "": a number
	// Sort returns the key of the ascending order, NaN for none; nil: Number, or the text.
	Sort func(Row) float64
}

// Names of columns that a list draws in a special way.
const (
	StateColumn = "state"
	TitleColumn = "name"  // the name that the user gave the run
	KnobColumns = "knobs" // the place of the columns of [Differing]
	CurveColumn = "curve" // its text is drawn by the list
)

// Columns are the columns of a list of runs in their order.
var Columns = []Column{
	{Name: StateColumn, Title: "state", Doc: "training, finished, stopped, ...", Priority: 90,
		Text: Row.state, Sort: Row.stateRank},
	{Name: TitleColumn, Title: "name", Doc: "the name that you gave the run", Priority: 88, Extra: true,
		Text: func(r Row) string { return r.About.Name }},
	{Name: "algorithm", Title: "algorithm", Doc: "the algorithm that ran last", Priority: 80,
		Text: func(r Row) string { return r.Algorithm }},
	{Name: "model", Title: "model", Doc: "the model, or environment and policy", Priority: 58,
		Text: func(r Row) string { return r.Model }},
	{Name: "data", Title: "data", Doc: "the data set", Priority: 45, Text: func(r Row) string { return r.Data }},
	{Name: "members", Title: "members", Doc: "the size of the population at the end", Priority: 52, Right: true,
		Text: Row.membersText, Number: func(r Row) float64 { return positive(float64(r.Members)) }},
	{Name: "workers", Title: "workers", Doc: "the number of workers at the end", Priority: 35, Right: true,
		Text: func(r Row) string { return r.last(option.Workers.Name) }, Number: settingNumber(option.Workers.Name)},
	{Name: KnobColumns, Title: "knobs", Doc: "settings in which the runs differ"},
	{Name: CurveColumn, Title: "curve", Doc: "the centre loss, or the fitness, over the run", Priority: 40,
		Text: func(Row) string { return "" }},
	{Name: "test", Title: "test", Doc: "the last test score, after its round if older", Priority: 85,
		Right: true, Text: Row.testText, Number: Row.test, Sort: Row.testRank},
	{Name: "validation", Title: "validation", Doc: "the score on the validation samples at the last test", Priority: 48,
		Right: true, Text: Row.heldText, Number: Row.validation, Sort: Row.validation},
	{Name: "centre_loss", Title: "centre loss",
		Doc:      "the last loss of the centre on validation samples; without a model the distance to the goal",
		Priority: 75, Right: true, Text: Row.lossText, Number: Row.loss},
	{Name: "rounds", Title: "rounds", Doc: "the committed rounds", Priority: 60, Right: true,
		Text:   func(r Row) string { return view.Grouped(r.Round) },
		Number: func(r Row) float64 { return float64(r.Round) }, Sort: func(r Row) float64 { return -float64(r.Round) }},
	{Name: "time", Title: "time", Doc: "the training time", Priority: 55, Right: true,
		Text: Row.timeText, Number: func(r Row) float64 { return positive(r.Seconds) },
		Parse: seconds, Form: "seconds or a duration such as 5m"},
	{Name: "tag", Title: "tags", Doc: "your tags", Priority: 65,
		Text: func(r Row) string { return strings.Join(r.About.Tags, " ") }},
	{Name: "date", Title: "date", Doc: "the start of the run", Priority: 50,
		Text: Row.date, Prefix: dateBegins, Form: "a date such as 2026-11-29",
		Sort: func(r Row) float64 { return -float64(r.Started.Unix()) }},
	{Name: "seed", Title: "seed", Doc: "the seed of all randomness", Priority: 25, Right: true,
		Text:   func(r Row) string { return strconv.FormatUint(r.Seed, 10) },
		Number: func(r Row) float64 { return float64(r.Seed) }},
	{Name: "fork", Title: "fork of", Doc: "the run that it was forked from", Priority: 20, Extra: true, Text: Row.parent},
	{Name: "preset", Title: "preset", Doc: "the preset that it was started with", Priority: 18, Extra: true,
		Text: func(r Row) string { return r.Preset }},
	{Name: "size", Title: "size", Doc: "the bytes of its directory", Priority: 16, Right: true, Extra: true,
		Text:   func(r Row) string { return view.Size(float64(r.Size)) },
		Number: func(r Row) float64 { return float64(r.Size) }, Sort: func(r Row) float64 { return -float64(r.Size) }},
}

// columnNamed returns a column of [Columns] by its name or title.
func columnNamed(name string) (Column, bool) {
	i := slices.IndexFunc(Columns, func(c Column) bool { return c.Name == name || c.Title == name })
	if i < 0 || Columns[i].Text == nil {
		return Column{}, false
	}
	return Columns[i], true
}

// settingColumn returns the column of a setting, such as a knob.
func settingColumn(name string) Column {
	return Column{Name: name, Title: name, Number: settingNumber(name),
		Text: func(r Row) string { return r.setting(name) }}
}

// firstKnobs are the priorities of the first columns of [Differing].
var firstKnobs = []int{72, 57}

// IsKnob reports whether a setting is a knob, or another setting that has no column in [Columns] and does not follow
// from others.
func IsKnob(s Setting) bool {
	_, other := columnNamed(s.Name)
	return !other && !slices.Contains(plainSettings, s.Name)
}

// maxDiffering is the largest number of columns of [Differing]: no table has room for more.
const maxDiffering = 12

// plainSettings follow from others or say little in a list.
var plainSettings = []string{"limit", "arithmetic", "fork of", option.OnLoss.Name}

// Differing returns a column for each setting in which the runs differ and that no other column shows. The settings
// that most runs have come first.
func Differing(rows []Row) (out []Column) {
	var lists [][]Setting
	for _, r := range rows {
		if r.Summary != nil && len(r.Settings) > 0 {
			lists = append(lists, r.Settings)
		}
	}
	found := differing(lists)
	slices.SortStableFunc(found, func(a, b difference) int { return b.runs - a.runs })
	for _, d := range found {
		if len(out) == maxDiffering {
			break
		}
		if IsKnob(Setting{Name: d.name}) {
			c := settingColumn(d.name)
			c.Priority = max(1, 49-3*len(out))
			if len(out) < len(firstKnobs) {
				c.Priority = firstKnobs[len(out)]
			}
			out = append(out, c)
		}
	}
	return out
}

// UsualColumns returns the names of the columns that are shown if the user chose none.
func UsualColumns() (names []string) {
	for _, c := range Columns {
		if !c.Extra {
			names = append(names, c.Name)
		}
	}
	return names
}

// Chosen returns the columns of a list of rows: those that the user chose, by name, or the usual ones for nil. It skips
// names that are unknown to this program.
func Chosen(names []string, rows []Row) (out []Column) {
	if names == nil {
		names = UsualColumns()
	}
	for _, name := range names {
		if name == KnobColumns {
			out = append(out, Differing(rows)...)
		} else if c, err := Lookup(name); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// Cell returns the text of a row in a table: "" for a row that is not read and for most columns of a folder. A number
// that is unknown is a dash.
func (c Column) Cell(r Row) string {
	switch {
	case c.Name == StateColumn:
		return r.state()
	case r.Summary == nil || r.Folder != "":
		return ""
	}
	if s := c.Text(r); s != "" && !r.Unknown() || c.Number == nil && c.Sort == nil {
		return s
	}
	return "–"
}

// Compare orders two rows by the column. Rows without a value come last, in a reverse order too.
func (c Column) Compare(a, b Row, reverse bool) int {
	key := c.Sort
	if key == nil {
		key = c.Number
	}
	sign := 1
	if reverse {
		sign = -1
	}
	if key == nil {
		x, y := c.sortText(a), c.sortText(b)
		if x == "" || y == "" {
			return strings.Compare(y, x) // the empty one last
		}
		return sign * strings.Compare(x, y)
	}
	x, y := math.NaN(), math.NaN()
	if a.Summary != nil {
		x = key(a)
	}
	if b.Summary != nil {
		y = key(b)
	}
	switch {
	case x < y:
		return -sign
	case x > y:
		return sign
	case x == x && y != y:
		return -1
	case x != x && y == y:
		return 1
	}
	return 0
}

func (c Column) sortText(r Row) string {
	if r.Summary == nil {
		return ""
	}
	return strings.ToLower(c.Text(r))
}

// state returns the state of a run as a word, or the number of runs in a folder.
func (r Row) state() string {
	switch {
	case r.Summary == nil && r.Running:
		return "running"
	case r.Summary == nil:
		return ""
	case r.Unknown() && r.Written.IsZero():
		return "asked"
	case r.Unknown():
		return "silent"
	case r.Folder != "":
		return view.Plural(r.Runs, "run")
	}
	return r.State()
}

// stateRank orders runs by state: running, killed and failed ones, which may need attention, before finished ones.
func (r Row) stateRank() float64 {
	order := []string{"training", "paused", "waiting", "killed", "failed", "broken", "stopped", "empty", "finished"}
	return float64(slices.Index(order, r.State()))
}

func (r Row) test() float64 {
	if r.Score == nil {
		return math.NaN()
	}
	return r.Score.Value
}

// testRank is the test score with lower as better.
func (r Row) testRank() float64 {
	if r.Score != nil && r.Score.More {
		return -r.Score.Value
	}
	return r.test()
}

// testText has the unit of a score behind it, and before it the name of any other score than the error, and the round
// of the test if the run has trained since.
func (r Row) testText() string {
	if r.Score == nil {
		return ""
	}
	text := view.ScoreText(r.Score.Value, r.Score.Percent)
	if !r.Score.Percent {
		text = strings.TrimPrefix(r.Score.Title, "test ") + " " + text
	}
	if r.TestRound != r.Round {
		text = "@" + view.Grouped(r.TestRound) + " " + text
	}
	return text
}

// validation is the score on the validation samples of the kind of the test score; NaN without one.
func (r Row) validation() float64 {
	if r.Score != nil {
		if x, ok := r.Figures["validation"+strings.TrimPrefix(r.Score.Key, "test")]; ok {
			return x
		}
	}
	return math.NaN()
}

func (r Row) heldText() string {
	if x := r.validation(); x == x {
		return view.ScoreText(x, r.Score.Percent)
	}
	return ""
}

// loss is NaN for an objective, whose result is its test score.
func (r Row) loss() float64 {
	if len(r.Curve) == 0 || r.Objective != "" {
		return math.NaN()
	}
	return r.Loss
}

// lossText has the word distance before the figure of a run without a model.
func (r Row) lossText() string {
	switch {
	case len(r.Curve) == 0 || r.Objective != "":
		return ""
	case r.Series != view.CentreLoss:
		return "distance " + view.Number(r.Loss)
	}
	return view.Number(r.Loss)
}

func (r Row) membersText() string {
	if r.Members == 0 {
		return ""
	}
	return view.Grouped(uint64(r.Members))
}

func (r Row) timeText() string {
	if r.Seconds == 0 {
		return ""
	}
	return view.Duration(time.Duration(r.Seconds * float64(time.Second)))
}

func (r Row) date() string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.Format("2006-01-02 15:04")
}

func (r Row) parent() string {
	if r.Parent == "" {
		return ""
	}
	return ShortName(filepath.Base(r.Parent))
}

// setting returns the value of a setting; "" if the run does not have it. A run of several algorithms has a knob for
// each, of which the last counts.
func (r Row) setting(name string) (value string) {
	for _, s := range r.Settings {
		if before, ok := strings.CutSuffix(s.Name, name); ok && (before == "" || before[len(before)-1] == ' ') {
			value = s.Value
		}
	}
	return value
}

// last returns the value of a setting at the end of the run.
func (r Row) last(name string) string {
	value := r.setting(name)
	if i := strings.LastIndex(value, " → "); i >= 0 {
		value = value[i+len(" → "):]
	}
	value, _, _ = strings.Cut(value, " @")
	return value
}

// settingNumber returns the function of a column for the number of a setting at the end of the run.
func settingNumber(name string) func(Row) float64 {
	return func(r Row) float64 {
		x, err := strconv.ParseFloat(r.last(name), 64)
		if err != nil {
			return math.NaN()
		}
		return x
	}
}

// positive returns x, or NaN for 0.
func positive(x float64) float64 {
	if x == 0 {
		return math.NaN()
	}
	return x
}

func seconds(value string) (float64, bool) {
	if d, err := time.ParseDuration(value); err == nil {
		return d.Seconds(), true
	}
	x, err := strconv.ParseFloat(value, 64)
	return x, err == nil
}

// dateBegins reports whether a value is a year, a month or a day.
func dateBegins(value string) bool {
	for _, layout := range []string{"2006", "2006-01", time.DateOnly} {
		if _, err := time.Parse(layout, value); err == nil {
			return true
		}
	}
	return false
}

// ShortName returns the name of a directory without the date that new sessions begin with. Commands accept it.
func ShortName(name string) string {
	if n := len("2006-01-02-"); len(name) > n {
		if _, err := time.Parse("2006-01-02-", name[:n]); err == nil {
			return name[n:]
		}
	}
	return name
}
