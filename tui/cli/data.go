package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/models/data/fetch"
	"brood/runtime/option"
	"brood/tui/textfmt"
)

func dataCommand(s streams) *cobra.Command {
	list := func(asJSON bool) error {
		if !asJSON {
			return listData(s.out)
		}
		var all []map[string]any
		for _, k := range data.Catalogue() {
			all = append(all, knownObject(k))
		}
		return objects(s.out, all...)
	}
	c := listing(&cobra.Command{Use: "data", Short: "List, describe and fetch the data sets"}, list)
	c.AddCommand(listing(&cobra.Command{Use: "list", Short: "List the data sets, where they are and how to get them"},
		list))
	info := &cobra.Command{Use: "info NAME|PATH",
		Short: "Describe one, or your own files: splits, normalisation, digest, classes, a few samples",
		Args:  exactly("a NAME or a PATH")}
	asJSON := jsonFlag(info)
	var read readingFlags
	read.register(info, option.ReadingOptions...)
	info.RunE = func(_ *cobra.Command, args []string) error {
		d, err := read.load(args[0])
		switch {
		case err != nil:
			return err
		case *asJSON:
			return objects(s.out, setObject(d))
		}
		describeData(s.out, d)
		return nil
	}
	c.AddCommand(info)
	c.AddCommand(getCommand(s), splitsCommand(s), whitenCommand(s))
	return c
}

// readingFlags are the flags of how data are read for a model.
type readingFlags struct {
	options          option.Options
	numbers, several bool
}

func (f *readingFlags) register(c *cobra.Command, these ...*option.Option) {
	optionFlags(c, &f.options, these...)
	c.Flags().BoolVar(&f.numbers, "numbers", false,
		"labels are numbers to predict, for a model with loss mse or huber, not classes")
	c.Flags().BoolVar(&f.several, "several", false,
		"labels are 0 or 1 for each class of a sample, for a model with loss bce")
}

func (f *readingFlags) load(nameOrPath string) (*data.Set, error) {
	if err := f.options.Check(); err != nil {
		return nil, err
	}
	r, err := f.options.Reading()
	if err != nil {
		return nil, err
	}
	r.MultiLabel = f.several
	switch {
	case f.numbers && f.several:
		return nil, usage("--numbers and --several: labels are one or the other; give one of them")
	case f.numbers || f.several:
		r.Outputs = 1
	}
	return r.Load(nameOrPath)
}

// listData prints the data sets. It looks for the files of each set but reads none of them.
func listData(w io.Writer) error {
	t := newTable("data", "state", "shape", ">classes", ">train", ">validation", ">test", "where")
	var absent []string
	for _, k := range data.Catalogue() {
		where, err := k.Where()
		state := presence(k, err)
		switch {
		case k.Files == nil:
			where = ""
		case err != nil:
			set, err := fetch.Lookup(k.Name)
			if err != nil {
				return err
			}
			absent = append(absent, fmt.Sprintf("%s was not found in %s; `brood data get %s` fetches %s", k.Name,
				strings.Join(k.Dirs(), " or "), k.Name, textfmt.Size(set.Bytes())))
		}
		train, validation, test := k.Splits()
		shape := fmt.Sprint(k.Shape)
		if k.Text {
			shape = "text"
		}
		t.row(k.Name, state, shape, fmt.Sprint(k.Classes), textfmt.Grouped(train), textfmt.Grouped(validation),
			textfmt.Grouped(test), where)
	}
	t.write(w)
	fmt.Fprintln(w)
	for _, line := range absent {
		fmt.Fprintln(w, oneLine(line))
	}
	fmt.Fprintln(w, "your own: --data with a path to a .csv, .npy, .npz or .txt file, IDX images, or a folder of "+
		"pictures; `brood data info PATH` tries it")
	return nil
}

// presence returns the state of a set for lists. err is the error of the search for its files, nil if they were found.
func presence(k data.Known, err error) string {
	switch {
	case k.Files == nil:
		return "built in"
	case err != nil:
		return "not here"
	}
	return "here"
}

func describeData(w io.Writer, d *data.Set) {
	if d.Text {
		describeText(w, d)
		return
	}
	kind := "images"
	if len(d.Shape) == 1 {
		kind = "samples"
	}
	what := fmt.Sprintf("in %d classes", d.Classes)
	if d.Outputs > 0 {
		what = "with " + textfmt.Count(d.Outputs, "number") + " to predict"
	}
	if d.MultiLabel {
		what = fmt.Sprintf("in several of %d classes", d.Outputs)
	}
	fmt.Fprintf(w, "%s: %s of %v %s\n", oneLine(d.Name), kind, d.Shape, what)
	held := ", taken from the training samples"
	switch by := d.SplitBy(); {
	case d.ValidationMarked():
		held = ", as marked in the data"
	case by.Column != "":
		held += " by --split-by " + by.String()
	}
	printFacts(w, [][2]string{
		{"from", d.From},
		{"train", textfmt.Grouped(len(d.Train()))},
		{"validation", textfmt.Grouped(len(d.Validation())) + held},
		{"test", textfmt.Grouped(len(d.Test()))},
		{"normalised", d.Normalisation()},
		{"in memory", textfmt.Size(d.Bytes())},
		{"digest", d.Digest()},
	})
	for _, note := range d.Notes {
		printFacts(w, [][2]string{{"note", note}})
	}
	fmt.Fprintln(w)
	if d.Outputs > 0 && !d.MultiLabel {
		describeTargets(w, d)
	} else {
		describeClasses(w, d)
	}
	drawSamples(w, d)
}

// describeTargets prints the statistics of the targets over the training split. Targets are standardised by this mean
// and deviation.
func describeTargets(w io.Writer, d *data.Set) {
	t := newTable(">output", "name", ">mean", ">deviation", ">least", ">most")
	names := d.Form().OutputNames()
	for k := range d.Outputs {
		least, most := math.Inf(1), math.Inf(-1)
		for _, id := range d.Train() {
			y := d.Restore(k, d.Targets(id)[k])
			if math.Abs(y) < 1e-6*float64(d.TargetStd[k]) { // below the resolution of a standardised float32
				y = 0
			}
			least, most = min(least, y), max(most, y)
		}
		name := ""
		if names != nil {
			name = names[k]
		}
		t.row(fmt.Sprint(k+1), name, fmt.Sprintf("%.6g", d.TargetMean[k]), fmt.Sprintf("%.6g", d.TargetStd[k]),
			fmt.Sprintf("%.6g", least), fmt.Sprintf("%.6g", most))
	}
	t.write(w)
}

// describeClasses prints the number of samples of each class, or with each label of a multi-label set, by split.
func describeClasses(w io.Writer, d *data.Set) {
	n := d.Classes
	if d.MultiLabel {
		n = d.Outputs
	}
	var counts [3][]int
	for i, split := range [][]int32{d.Train(), d.Validation(), d.Test()} {
		counts[i] = make([]int, n)
		for _, id := range split {
			if !d.MultiLabel {
				counts[i][d.Label(id)]++
				continue
			}
			for c, has := range d.Targets(id) {
				counts[i][c] += int(has)
			}
		}
	}
	t := newTable(">class", "name", ">train", ">validation", ">test")
	classes := consecutive(0, n)
	if n > tableClasses && !d.MultiLabel {
		slices.SortStableFunc(classes, func(a, b int) int { return cmp.Compare(counts[0][a], counts[0][b]) })
		classes = classes[:20]
		fmt.Fprintf(w, "the classes with the fewest samples:\n")
	}
	for _, c := range classes {
		name := ""
		if d.Names != nil || d.MultiLabel {
			name = d.ClassName(c)
		}
		t.row(fmt.Sprint(c), name, textfmt.Grouped(counts[0][c]), textfmt.Grouped(counts[1][c]),
			textfmt.Grouped(counts[2][c]))
	}
	t.write(w)
}

// describeText prints the splits and baselines of a text. The length of a sample is not shown, since the model sets it.
func describeText(w io.Writer, d *data.Set) {
	unigram, bigram := d.Baselines()
	fmt.Fprintf(w, "%s: a text of %s bytes, all below %d\n", oneLine(d.Name), textfmt.Grouped(d.Len()+d.Features()),
		d.Classes)
	printFacts(w, [][2]string{
		{"from", d.From},
		{"train", textfmt.Grouped(len(d.Train())) + " bytes that follow a byte, at the start of the text"},
		{"validation", textfmt.Grouped(len(d.Validation())) + ", after them"},
		{"test", textfmt.Grouped(len(d.Test())) + ", at the end"},
		{"normalised", d.Normalisation()},
		{"bits a byte", fmt.Sprintf("%.3f by the frequency of each byte, %.3f by its frequency after the byte before "+
			"it",
			unigram, bigram)},
		{"in memory", textfmt.Size(d.Bytes())},
		{"digest", d.Digest()},
	})
	fmt.Fprintln(w)
	lines := strings.Split(strings.TrimRight(string(d.Head(textShown)), "\n"), "\n")
	for _, line := range lines[:min(len(lines), textLines)] {
		fmt.Fprintf(w, "  %.*q\n", widest*2, line)
	}
}

// textShown is the number of bytes of a text that are read for display, textLines the number of lines shown of them.
const textShown, textLines = 400, 3

func printFacts(w io.Writer, facts [][2]string) {
	for _, f := range facts {
		fmt.Fprintf(w, "  %-11s %s\n", f[0], oneLine(f[1]))
	}
}

// widest is the largest width in pixels of images that are drawn: three of them fit on a line.
const widest = 40

// drawSamples draws the first three training images side by side, one character for two rows of a pixel column. It
// draws nothing if samples are not images of bytes or are wider than widest.
func drawSamples(w io.Writer, d *data.Set) {
	const shades = " .:-=+*#%@"
	if len(d.Shape) != 3 || d.Shape[2] > widest || d.Image(0) == nil {
		return
	}
	channels, h, wd := d.Shape[0], d.Shape[1], d.Shape[2]
	ids := d.Train()[:min(3, len(d.Train()))]
	fmt.Fprintln(w)
	for y := 0; y+1 < h; y += 2 {
		var b strings.Builder
		for _, id := range ids {
			img := d.Image(id)
			for x := range wd {
				v := 0
				for c := range channels {
					v += int(img[(c*h+y)*wd+x]) + int(img[(c*h+y+1)*wd+x])
				}
				b.WriteByte(shades[v*(len(shades)-1)/(2*255*channels)])
			}
			b.WriteString("  ")
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
