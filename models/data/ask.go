package data

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Asked is samples to predict with a model. Slices are read-only.
type Asked struct {
	*Set           // in the model's form; samples without labels have class 0
	IDs   []int32  // ids of the samples, in the order of the source
	Names []string // per sample: its number in the file, from 1, or the path of a picture within its folder
	// Carried are the columns of Reading.Carry, and their cells by sample.
	Carried      []string
	CarriedCells [][]string
	// per sample: its label as read, which may not be a class of the model; nil if there are no labels
	Answers []string
}

// Ask reads samples, with or without labels, to predict with a model. For a named set, and for a path that contains
// test samples, these are the test samples; otherwise all samples. The data must fit the Form as in [Reading.Load],
// except that labels are not checked.
func (r Reading) Ask(nameOrPath string) (*Asked, error) {
	if r.Carry != "" && (!IsPath(nameOrPath) || !isTable(nameOrPath)) {
		return nil, usererr.Errorf("id %s: %s has no columns to choose from; leave it out", r.Carry, nameOrPath)
	}
	if !IsPath(nameOrPath) {
		s, err := r.Load(nameOrPath)
		if err != nil {
			return nil, err
		}
		a := &Asked{Set: s, IDs: s.Test(), Names: numbersFrom1(len(s.Test()))}
		for _, id := range a.IDs {
			a.Answers = append(a.Answers, s.ClassName(int(s.Label(id))))
		}
		return a, nil
	}
	if r.Form == nil {
		return nil, fmt.Errorf("the model does not say how its samples were normalised or what its classes are called, "+
			"and %s does not contain this: give --form, name a data set, or export the model again", nameOrPath)
	}
	if IsText(nameOrPath) {
		return r.askText(nameOrPath)
	}
	if r.Form.Text {
		return nil, fmt.Errorf("%s is no text, which the model was trained on: give a .txt file", nameOrPath)
	}
	p, names, err := r.ask(filepath.Clean(nameOrPath), r.asked())
	if err != nil {
		return nil, withAdvice(err)
	}
	return r.newAsked(nameOrPath, p, names)
}

// AskTable is [Reading.Ask] for a table that is read from in. name describes it in errors.
func (r Reading) AskTable(in io.Reader, name string) (*Asked, error) {
	if r.Form == nil || r.Form.Text {
		return nil, usererr.Errorf("%s: the model does not say how a table becomes its samples: name a data set or a file",
			name)
	}
	p, err := r.readCSV(in, name, r.asked(), false)
	if err != nil {
		return nil, err
	}
	return r.newAsked(name, p, nil)
}

// asked returns the columns of samples to predict.
func (r Reading) asked() *columns {
	return &columns{
		owner:         "the model",
		features:      r.Form.columnNames(),
		encoded:       r.Form.Columns,
		label:         r.Form.Label,
		requested:     r.Label,
		numericLabels: r.targeted(),
		modelFeatures: size(r.Form.Shape),
	}
}

// isTable reports whether a path is that of a table, by its name.
func isTable(path string) bool {
	ext := filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz"))
	return ext == ".csv" || ext == ".tsv"
}

// targeted reports whether the model's labels are numbers: regression targets, or 0 and 1 of multi-label classes.
func (r Reading) targeted() bool { return r.MultiLabel || r.Form.TargetMean != nil }

// newAsked builds the set of the samples in p, all of which are to be predicted. names is nil for samples numbered from
// 1.
func (r Reading) newAsked(name string, p *part, names []string) (*Asked, error) {
	f := r.Form
	shape, err := fitShape(p.shape, f.Shape)
	if err != nil {
		return nil, fmt.Errorf("data %s: %w", name, err)
	}
	if err := r.unifyType([]*part{p}); err != nil {
		return nil, err
	}
	n := (len(p.Pixels) + len(p.Values) + len(p.Doubles)) / size(shape)
	info := Info{
		Name:       name,
		Shape:      shape,
		Classes:    len(f.Classes),
		Names:      f.Classes,
		Outputs:    len(f.TargetMean),
		MultiLabel: r.MultiLabel,
		Mean:       f.Mean,
		Std:        f.Std,
		From:       p.path,
		TargetMean: f.TargetMean,
		TargetStd:  f.TargetStd,
	}
	if r.MultiLabel {
		info.Classes, info.Outputs = 0, len(f.Classes)
	}
	s := &Set{Info: info, sampleName: p.sampleName, columns: columns{encoded: p.encoded}}
	s.setSamples(p.Raster)
	s.labels, s.targets = make([]uint16, n), make([]float32, n*info.Outputs)
	if err := s.build(n, 0); err != nil {
		return nil, err
	}
	if names == nil {
		names = numbersFrom1(n)
	}
	answers := p.names
	if p.outputs == 1 {
		for _, v := range p.Targets {
			answers = append(answers, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
	}
	return &Asked{
		Set:          s,
		IDs:          s.Train(),
		Names:        names,
		Carried:      p.carried,
		CarriedCells: p.carriedCells,
		Answers:      answers,
	}, nil
}

func numbersFrom1(n int) []string { return numbersFrom(1, n) }

func numbersFrom(first, n int) (out []string) {
	for i := range n {
		out = append(out, strconv.Itoa(first+i))
	}
	return out
}

// ask reads the samples at path and their labels, if there are any. names is the paths of pictures, else nil.
func (r Reading) ask(path string, want *columns) (p *part, names []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return r.askFolder(path, want)
	}
	name := strings.ToLower(filepath.Base(path))
	ext := filepath.Ext(strings.TrimSuffix(name, ".gz"))
	if isTable(path) {
		p, err = r.table(path, want, false)
		return p, nil, err
	}
	if err := r.checkNoLabelColumn(path); err != nil {
		return nil, nil, err
	}
	switch ext {
	case ".npz":
		p, err = askNPZ(path, r.targeted())
	case ".npy":
		x := strings.TrimSuffix(filepath.Base(path), ".npy")
		p, err = folderArrays(filepath.Dir(path), r.targeted()).ask(path, x)
	default:
		if isPicture(name) {
			p, err = r.readFiles(path, []picture{{path: path}}, r.Form.Shape[0] == 3)
			if err == nil {
				p.names = nil
			}
			return p, []string{filepath.Base(path)}, err
		}
		if !isImages(name) {
			return nil, nil, unreadable(path,
				"a .csv, .npy or .npz file, the images file of an IDX pair, a PNG or JPEG picture, or a folder of them")
		}
		p, err = r.askIDX(path)
	}
	return p, nil, err
}

func (r Reading) askFolder(dir string, want *columns) (*part, []string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]string{}
	var images, files []string
	folders := false
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		found[name] = filepath.Join(dir, e.Name())
		folders = folders || e.IsDir() && !strings.HasPrefix(name, ".")
		switch {
		case isImages(name):
			images = append(images, found[name])
		case isPicture(name) && !strings.HasPrefix(name, "."):
			files = append(files, found[name])
		}
	}
	for _, ext := range []string{"", ".csv", ".csv.gz", ".tsv"} {
		if a, b := found["train"+ext], found["test"+ext]; a != "" && b != "" {
			return r.ask(b, want)
		}
	}
	if err := r.checkNoLabelColumn(dir); err != nil {
		return nil, nil, err
	}
	for _, x := range []string{"x_test", "x", "x_train"} {
		if found[x+".npy"] != "" {
			p, err := folderArrays(dir, r.targeted()).ask(dir, x)
			return p, nil, err
		}
	}
	if len(images) > 0 {
		path := images[0]
		if len(images) > 1 {
			train, err := trainImages(images)
			if err != nil {
				return nil, nil, err
			}
			path = cmp.Or(testImagesFor(train), train)
		}
		p, err := r.askIDX(path)
		return p, nil, err
	}
	var pictures []picture
	switch {
	case folders || len(files) == 0:
		if pictures, err = listPictures(dir); err != nil {
			return nil, nil, err
		}
	default:
		for _, path := range files {
			pictures = append(pictures, picture{path: path})
		}
	}
	p, err := r.readFiles(dir, pictures, r.Form.Shape[0] == 3)
	if err != nil {
		return nil, nil, err
	}
	if !folders {
		p.names = nil
	}
	var names []string
	for _, f := range pictures {
		name, err := filepath.Rel(dir, f.path)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, filepath.ToSlash(name))
	}
	return p, names, nil
}

func askNPZ(path string, targets bool) (*part, error) {
	z, err := openNPZ(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	a := zipArrays(path, &z.Reader)
	a.targets = targets
	for _, x := range []string{"x_test", "x", "x_train"} {
		if slices.Contains(a.names, x) {
			return a.ask(path, x)
		}
	}
	return nil, fmt.Errorf("%s holds %s: name the samples x or x_test", path, quoted(a.names))
}

// ask reads the array x of samples and, if it is there, the array of labels of the same name with y for x.
func (a arrays) ask(from, x string) (*part, error) {
	rest, paired := strings.CutPrefix(x, "x")
	if paired && slices.Contains(a.names, "y"+rest) {
		return a.pair(from, x)
	}
	p, _, err := a.samples(from, x)
	return p, err
}

func (r Reading) askIDX(path string) (*part, error) {
	if _, _, ok := labelsFor(path); ok {
		return r.readIDXPair(path)
	}
	_, shape, pixels, err := readImages(path, 0)
	return &part{Raster: Raster{Pixels: pixels}, shape: shape, path: path}, err
}

// readHeaderForModel determines the columns of samples whose labels may be missing, and reports whether the first line
// is a header. The label column is the requested one, else the model's, else one with a usual label name that is not a
// feature. If the model has no column names and none of these is found, a table of one column more than the model takes
// has its label in the last column.
func (t *csvTable) readHeaderForModel(trimmed, lower []string, numbers int) (isHeader bool, err error) {
	t.labelIndex = -1
	for _, name := range labelColumns() {
		if i := slices.Index(lower, name); i >= 0 && t.labelIndex < 0 && !slices.Contains(t.want.features, trimmed[i]) {
			t.labelIndex = i
		}
	}
	of := cmp.Or(t.want.requested, t.want.label)
	if namesSeveralColumns(of, trimmed) {
		return t.readLabelColumnsForModel(of, trimmed, numbers)
	}
	if of != "" {
		if i := t.columnOf(of, trimmed, numbers); i >= 0 {
			t.labelIndex = i
		}
	}
	missing := func(f string) bool { return !slices.Contains(trimmed, f) }
	all := t.want.features != nil && !slices.ContainsFunc(t.want.features, missing)
	if isHeader = t.labelIndex >= 0 || numbers == 0 || all; isHeader {
		t.header = trimmed
	}
	if t.want.requested != "" && t.columnOf(t.want.requested, trimmed, numbers) < 0 {
		if err := t.pickByPosition(trimmed, isHeader); err != nil {
			return false, err
		}
	}
	if t.want.features == nil && t.labelIndex < 0 {
		switch t.width {
		case t.want.modelFeatures:
		case t.want.modelFeatures + 1:
			t.labelIndex = t.width - 1
			if err := t.pickByPosition(trimmed, false); err != nil {
				return false, err
			}
		default:
			return false, fmt.Errorf("%s has %d columns, and the model takes %d numbers: "+
				"give each sample so many, with or without a label behind them", t.path, t.width, t.want.modelFeatures)
		}
	}
	return isHeader, t.chooseFeatures()
}
