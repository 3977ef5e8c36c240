package archive

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"brood/models/usererr"
	"brood/optim/catalog"
	"brood/runtime/option"
)

// Query selects rows of a list. All its terms must hold: plain words, which the texts of a run contain, and comparisons
// such as eta<0.1, algorithm=parle or tag:best. The operators are = != < <= > >= and : for texts that contain the
// value. A name is that of a column, of a setting such as a knob, or of a metric such as test_error. Case does not
// matter.
type Query struct {
	words []string // in lower case
	terms []term
}

// term is a comparison.
type term struct {
	column Column
	op     string
	value  string  // in lower case
	number float64 // of value, if the column compares numbers; NaN: it has no number
}

var comparison = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*)(!=|<=|>=|=|<|>|:)(.*)$`)

// ParseQuery parses the words of a query. A comparison without a value holds for all rows, so that a list does not
// become empty while it is typed. The error names the wrong word and is a usage error.
func ParseQuery(text string) (q Query, err error) {
	for _, word := range comparisons(strings.Fields(text)) {
		m := comparison.FindStringSubmatch(word)
		if m == nil {
			q.words = append(q.words, strings.ToLower(word))
			continue
		}
		t := term{op: m[2], value: strings.ToLower(m[3])}
		if t.column, err = Lookup(m[1]); err != nil {
			if t.op == ":" && suggest(m[1]) == "" { // a text such as mlp:16
				q.words = append(q.words, strings.ToLower(word))
				continue
			}
			return Query{}, fmt.Errorf("%s: %w", word, err)
		}
		if t.value == "" {
			continue
		}
		if err := t.parse(); err != nil {
			return Query{}, fmt.Errorf("%s: %w", word, err)
		}
		q.terms = append(q.terms, t)
	}
	return q, nil
}

// comparisons splits words such as eta=0.1,seed=2, the name of a run of a sweep, at the commas before a comparison.
func comparisons(words []string) (out []string) {
	for _, word := range words {
		for i, part := range strings.Split(word, ",") {
			if i > 0 && !comparison.MatchString(part) {
				out[len(out)-1] += "," + part
			} else {
				out = append(out, part)
			}
		}
	}
	return out
}

// parse parses the value, and checks the operator.
func (t *term) parse() error {
	c, ordered := t.column, strings.ContainsAny(t.op, "<>")
	switch {
	case t.op == ":":
		return nil
	case c.Number != nil:
		x, ok := 0.0, false
		if c.Parse != nil {
			x, ok = c.Parse(t.value)
		} else {
			var err error
			x, err = strconv.ParseFloat(strings.TrimSuffix(t.value, "%"), 64)
			ok = err == nil
		}
		if t.number = x; !ok {
			t.number = math.NaN()
		}
		if form := c.Form; ordered && !ok {
			if form == "" {
				form = "a number"
			}
			return usererr.Errorf("write %s after %s%s", form, c.Name, t.op)
		}
	case c.Prefix != nil && !c.Prefix(t.value):
		return usererr.Errorf("write %s after %s%s", c.Form, c.Name, t.op)
	case c.Prefix == nil && ordered:
		return usererr.Errorf("%s is text: write %s=%s or %s:%s", c.Name, c.Name, t.value, c.Name, t.value)
	}
	return nil
}

// Lookup returns the column of a name: one of [Columns], or that of a metric or setting. The error is a usage error.
func Lookup(name string) (Column, error) {
	low := strings.ToLower(name)
	if c, ok := columnNamed(low); ok {
		return c, nil
	}
	if slices.ContainsFunc(Metrics, func(m Metric) bool { return m.Name == low }) {
		return metricColumn(low), nil
	}
	if slices.Contains(settingNames(), low) {
		return settingColumn(low), nil
	}
	return Column{}, usererr.Errorf("no column, setting or metric is called %q%s", name, suggest(name))
}

// suggest returns the end of an error about an unknown name, with a known one that is similar; "" for none.
func suggest(name string) string {
	return usererr.Suggest(name, slices.Concat(columnNames(), settingNames()))
}

// metricColumn returns the column of a metric. The test score is known without the figures of the run.
func metricColumn(name string) Column {
	number := func(r Row) float64 {
		if r.Score != nil && r.Score.Key == name {
			return r.Score.Value
		}
		if x, ok := r.Figures[name]; ok {
			return x
		}
		return math.NaN()
	}
	return Column{Name: name, Title: name, Right: true, Number: number, Text: func(r Row) string {
		if x := number(r); x == x {
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
		return ""
	}}
}

// settingNames returns the names of the settings of a run: options, and the knobs of all algorithms.
var settingNames = sync.OnceValue(func() []string {
	names := map[string]bool{}
	for _, x := range option.With(option.Logged) {
		names[x.Name] = true
	}
	for _, a := range catalog.All() {
		for _, k := range a.Knobs {
			names[k.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
})

// columnNames returns the names of columns and metrics.
func columnNames() (out []string) {
	for _, c := range Columns {
		if c.Name != KnobColumns && c.Name != CurveColumn {
			out = append(out, c.Name)
		}
	}
	for _, m := range Metrics {
		out = append(out, m.Name)
	}
	return out
}

// Match reports whether a row passes. A row without a summary and a folder pass by words only.
func (q Query) Match(r Row) bool {
	if len(q.words) > 0 {
		text := r.text()
		for _, w := range q.words {
			if !strings.Contains(text, w) {
				return false
			}
		}
	}
	for _, t := range q.terms {
		if r.Summary == nil || r.Folder != "" || !t.match(r) {
			return false
		}
	}
	return true
}

// text returns the texts in which a query looks for words, in lower case.
func (r Row) text() string {
	texts := []string{r.Name, r.Folder}
	if k := r.Summary; k != nil {
		texts = append(texts, k.About.Name, k.About.Note, k.Preset, k.Algorithm, k.Model, k.Data, k.Parent)
		texts = append(texts, k.About.Tags...)
		if r.Folder == "" {
			texts = append(texts, k.State())
		}
	}
	return strings.ToLower(strings.Join(texts, "\x00"))
}

func (t term) match(r Row) bool {
	text := strings.ToLower(t.column.Text(r))
	switch {
	case t.op == ":":
		return strings.Contains(text, t.value)
	case t.op == "!=":
		return !t.equal(r, text)
	case t.op == "=":
		return t.equal(r, text)
	}
	sign := 0.0
	if t.column.Number != nil {
		sign = t.column.Number(r) - t.number // NaN fails all comparisons
	} else if text == "" {
		return false
	} else {
		sign = float64(strings.Compare(text[:min(len(text), len(t.value))], t.value))
	}
	switch t.op {
	case "<":
		return sign < 0
	case "<=":
		return sign <= 0
	case ">":
		return sign > 0
	}
	return sign >= 0
}

// equal compares numbers if both are some, else texts: the beginning of a date, and any word of a list of tags.
func (t term) equal(r Row, text string) bool {
	if t.column.Number != nil && t.number == t.number {
		return t.column.Number(r) == t.number
	}
	if t.column.Prefix != nil {
		return strings.HasPrefix(text, t.value)
	}
	return text == t.value || slices.Contains(strings.Fields(text), t.value)
}

// Complete returns the completions of the last word of a query for a list of rows: names with the operator =, or after
// an operator the values that the rows have.
func Complete(rows []Row, text string) (out []string) {
	last := text[strings.LastIndex(text, " ")+1:]
	found := map[string]bool{}
	if m := comparison.FindStringSubmatch(last); m != nil {
		c, err := Lookup(m[1])
		for _, r := range rows {
			if err != nil || r.Summary == nil || r.Folder != "" {
				continue
			}
			if v := c.Text(r); v != "" && !strings.Contains(v, " ") {
				found[m[1]+m[2]+v] = true
			}
		}
	} else {
		for _, name := range columnNames() {
			found[name+"="] = true
		}
		for _, r := range rows {
			if r.Summary != nil {
				for _, s := range r.Settings {
					found[s.Name+"="] = !strings.Contains(s.Name, " ")
				}
			}
		}
	}
	for _, word := range slices.Sorted(maps.Keys(found)) {
		if found[word] && strings.HasPrefix(word, last) {
			out = append(out, word)
		}
	}
	return out
}
