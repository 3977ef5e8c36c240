package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"brood/runtime/archive"

	"github.com/spf13/cobra"

	"brood/models/format/safetensors"
	"brood/models/usererr"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/export"
	"brood/runtime/host"
	"brood/tui/picture"
	"brood/tui/textfmt"
)

// exporting holds the flags of brood export.
type exporting struct {
	to      string // one of exportForms
	file    string // -o; "": a file named after the session
	at      uint64
	threads int
	members bool   // include the values of each member
	force   bool   // overwrite files
	program string // the objective command of the session; "" for none
	ofFlag  string // --of: which model; "" for the centre
	of      evaluate.Of

	pictured pictureOptions
}

// Export formats.
const (
	toModel   = "safetensors"
	toONNX    = "onnx"
	toCSV     = "csv"
	toJSON    = "jsonl"
	toParquet = "parquet"
	toBoard   = "tensorboard"
)

// tableForm writes curves as a table. Its name is the file extension.
type tableForm struct {
	name  string
	write func(io.Writer, *export.Table) error
}

var tableForms = []tableForm{{toCSV, export.CSV}, {toJSON, export.JSONLines}, {toParquet, export.Parquet}}

func exportForms() []string {
	out := []string{toModel, toONNX}
	for _, f := range tableForms {
		out = append(out, f.name)
	}
	return append(append(out, toBoard), picture.Forms()...)
}

func exportCommand(s streams) *cobra.Command {
	var x exporting
	c := &cobra.Command{
		Use:   "export SESSION...",
		Short: "Write the trained model of a session, or the curves of sessions, to a file that other tools read",
		Long: "Write the trained model of a session to a .safetensors file: the centre of its population with\n" +
			"rebuilt batch-norm statistics, under the names that PyTorch uses. brood eval scores it, and brood run --init\n" +
			"starts from it. The session may be running.\n\n" +
			"--to onnx writes the same model for other runtimes, with the normalisation of its samples as the first\n" +
			"nodes.\n\n" +
			"--to csv, jsonl and parquet write the curves of one or several sessions as one table: a row for each round\n" +
			"of each session, or with --members a row for each value of each member. --to tensorboard writes a directory\n" +
			"that TensorBoard shows. docs/export.md describes the columns and their units. -o - writes csv and jsonl to\n" +
			"standard output.\n\n" +
			"--to svg and png draw a screen of the workbench, for papers, issues and pages.",
		Args: atLeastOne("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.check(c, args); err != nil {
				return err
			}
			switch {
			case x.model():
				return x.models(c.Context(), s, args)
			case x.to == toBoard:
				return x.tensorBoard(s, args)
			case x.picture():
				return x.pictures(c.Context(), s, args)
			}
			return x.tables(s, args)
		},
	}
	c.Flags().StringVar(&x.to, "to", toModel,
		"format to write: "+strings.Join(exportForms(), ", ")+" (default: by the extension of -o)")
	roundVar(c.Flags(), &x.at,
		"round of a model or a picture, or best, that of the lowest validation loss (default: the last)")
	x.pictured.register(c.Flags())
	c.Flags().StringVar(&x.ofFlag, "of", "", "model to write: "+evaluate.OfForms+", or best-round, the "+
		"centre of --at best (default: centre)")
	threadsFlag(c.Flags(), &x.threads)
	c.Flags().StringVarP(&x.file, "output", "o", "",
		"file to write, - for standard output; a directory for models of several sessions (default: SESSION and the format)")
	c.Flags().BoolVar(&x.members, "members", false, "curves: write the values of each member, a row each")
	programFlags(c.Flags(), &x.program)
	c.Flags().BoolVar(&x.force, "force", false, "replace an existing file")
	return c
}

func (x *exporting) check(c *cobra.Command, args []string) error {
	form := strings.ToLower(strings.TrimPrefix(filepath.Ext(x.file), "."))
	info, err := os.Stat(x.file)
	files := slices.DeleteFunc(exportForms(), func(f string) bool { return f == toBoard })
	folder := len(args) > 1 || err == nil && info.IsDir()
	switch known := slices.Contains(exportForms(), form); {
	case known && !c.Flags().Changed("to"):
		x.to = form
	case known && form != x.to && slices.Contains(exportForms(), x.to):
		return usage("-o %s has the extension of %s, but --to is %s: give one of them", x.file, form, x.to)
	case !known && form != "" && !c.Flags().Changed("to") && !folder:
		return usage("-o %s: no format has the extension .%s; give .%s, or name the format with --to", x.file, form,
			strings.Join(files, ", ."))
	}
	switch {
	case !slices.Contains(exportForms(), x.to):
		return usage("--to %s: choose one of %s", x.to, strings.Join(exportForms(), ", "))
	case x.model() && x.members:
		return usage("--members applies to curves: give their format, such as --to %s", toCSV)
	case !x.model() && c.Flags().Changed("of"):
		return usage("--of applies to models: the curves of a session are exported whole")
	case !x.model() && !x.picture() && x.at > 0:
		return usage("--at applies to models and pictures: the curves of a session are exported whole")
	case x.file == "-" && x.to != toCSV && x.to != toJSON:
		return usage("-o -: %s is not written to standard output; name a file", x.to)
	}
	if err := x.checkPicture(c); err != nil {
		return err
	}
	if err := checkAt(c, x.at); err != nil {
		return err
	}
	if x.ofFlag == bestWord+"-round" {
		if x.at > 0 {
			return usage("--of %s names a round: leave --at out", x.ofFlag)
		}
		x.at = bestRound
	} else if c.Flags().Changed("of") {
		all, err := evaluate.ParseOf(x.ofFlag)
		switch {
		case err != nil:
			return usage("--of: %v", err)
		case len(all) > 1:
			return usage("--of %s: a file holds one model; export them one by one, with -o", x.ofFlag)
		}
		x.of = all[0]
	}
	return nil
}

// noteRecomputed returns a function that prints the recomputed rounds to w, at most one each second. last is the time
// of the last line.
func noteRecomputed(w io.Writer, last time.Time) func(event.Commit) {
	return func(k event.Commit) {
		if time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(w, "brood: recomputed round %d\n", k.To)
		}
	}
}

// model reports whether the format is one of models rather than curves.
func (x *exporting) model() bool { return x.to == toModel || x.to == toONNX }

// into returns the file for the model of a session: the file of -o for a single session, else a file in the directory
// of -o with the name of the session, and a suffix for a model other than the centre.
func (x *exporting) into(dir string, several bool) string {
	if x.file != "" && !several {
		return x.file
	}
	name := filepath.Base(dir)
	if x.of.Name != "" && x.of.Name != evaluate.OfCentre {
		name += "." + x.of.String()
	}
	return filepath.Join(x.file, name+"."+x.to)
}

func (x *exporting) models(ctx context.Context, s streams, args []string) error {
	sessions, err := sessionsOf(args)
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, c := range sessions {
		file := x.into(c.path, len(sessions) > 1)
		if other := files[file]; other != "" {
			return fmt.Errorf("%s and %s would both be written to %s: export them one by one, with -o", other, c.path, file)
		}
		files[file] = c.path
	}
	if len(sessions) > 1 && x.file != "" {
		if err := os.MkdirAll(x.file, 0o755); err != nil {
			return fmt.Errorf("-o %s: several models go into a directory: %w", x.file, elsewhere(err))
		}
	}
	for file := range files {
		if err := writable(file, x.force); err != nil {
			return err
		}
	}
	for _, c := range sessions {
		text, err := x.writeModel(ctx, c.path, x.into(c.path, len(sessions) > 1), noteRecomputed(s.err, time.Time{}))
		if err != nil {
			return err
		}
		fmt.Fprintln(s.out, oneLine(text))
	}
	return nil
}

func (x *exporting) tables(s streams, args []string) error {
	runs, err := exported(s, args)
	if err != nil {
		return err
	}
	table := export.Rounds(runs)
	if x.members {
		table = export.Members(runs)
	}
	form := tableForms[slices.IndexFunc(tableForms, func(f tableForm) bool { return f.name == x.to })]
	if x.file == "-" {
		return form.write(exact(s.out), table)
	}
	file := x.file
	if file == "" {
		file = "sessions." + x.to
		if len(runs) == 1 {
			file = runs[0].Name + "." + x.to
		}
	}
	rows := 0
	each := table.Each
	table.Each = func(take func([]any) error) error {
		return each(func(row []any) error { rows++; return take(row) })
	}
	if err := writeFile(file, x.force, func(w io.Writer) error { return form.write(w, table) }); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: %s of %s, %s\n", oneLine(file), textfmt.Count(rows, "row"),
		textfmt.Count(len(runs), "session"), textfmt.Count(len(table.Columns), "column"))
	return nil
}

// tensorBoard writes a TensorBoard event file for each session, in a directory of its name.
func (x *exporting) tensorBoard(s streams, args []string) error {
	runs, err := exported(s, args)
	if err != nil {
		return err
	}
	top := cmp.Or(x.file, toBoard)
	for _, r := range runs {
		if err := vacant(filepath.Join(top, r.Name, r.EventFile()), x.force); err != nil {
			return err
		}
	}
	for _, r := range runs {
		dir := filepath.Join(top, r.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return elsewhere(err)
		}
		err := writeFile(filepath.Join(dir, r.EventFile()), x.force,
			func(w io.Writer) error { return export.TensorBoard(w, r, x.members) })
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(s.out, "%s: %s; show them with tensorboard --logdir %s\n", top, textfmt.Count(len(runs), "session"), top)
	return nil
}

// exported is [readAll] for runs to export. It fails if there is none.
func exported(s streams, args []string) (runs []*export.Run, err error) {
	if runs, err = readAll(s, args, export.Read); err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, errors.New("none of these sessions can be exported")
	}
	joined := make([]*archive.Run, len(runs))
	for i, r := range runs {
		joined[i] = r.Run
	}
	archive.Join(joined)
	return runs, nil
}

// vacant fails if the file exists, unless force is set. It ignores devices and directories, which force cannot replace.
func vacant(file string, force bool) error {
	if at, err := os.Stat(file); err == nil && at.Mode().IsRegular() && !force {
		return fmt.Errorf("%s exists: name another file with -o, or replace it with --force", file)
	}
	return nil
}

// writable fails if writeFile would fail before it calls write. Call it before long work.
func writable(file string, force bool) error {
	if err := vacant(file, force); err != nil {
		return err
	}
	return elsewhere(safetensors.Creatable(file))
}

// elsewhere is [usererr.Elsewhere] for the file of -o.
func elsewhere(err error) error { return usererr.Elsewhere(err, "name another file with -o") }

// writeFile writes a file atomically.
func writeFile(file string, force bool, write func(io.Writer) error) error {
	if err := vacant(file, force); err != nil {
		return err
	}
	return elsewhere(safetensors.WriteFile(file, write))
}

// writeModel writes the model of the session in dir to a file, and returns a description. It calls recomputed with each
// round that is recomputed for it.
func (x *exporting) writeModel(ctx context.Context, dir, file string, recomputed func(event.Commit)) (string, error) {
	if err := writable(file, x.force); err != nil {
		return "", err
	}
	own, err := host.Program(x.program)
	if err != nil {
		return "", err
	}
	at, err := roundOf(dir, x.at)
	if err == nil && x.to == toONNX {
		err = evaluate.CheckONNX(own, dir, at)
	}
	if err != nil {
		return "", err
	}
	all, err := evaluate.ExportModels(ctx, own, dir, at, []evaluate.Of{x.of}, x.threads, recomputed)
	if err != nil {
		return "", err
	}
	t := all[0]
	text := fmt.Sprintf("%s: %s after round %d of %s, %s parameters", file, t.Net.Name, t.Round, t.Session,
		textfmt.Grouped(len(t.Params)))
	if made := t.Made(); made != "" {
		text += fmt.Sprintf(" (%s: %s)", t.Of, made)
	}
	if x.to == toModel {
		return text, elsewhere(t.Save(file))
	}
	if t.Read.Form == nil {
		text += "; its data were not found, so that it takes normalised samples"
	}
	return text, writeFile(file, x.force, t.ONNX)
}

// unusedTensors returns a note on the tensors of a file that the model does not use; "" for none.
func unusedTensors(file string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return oneLine(fmt.Sprintf("%s has %s that the model does not use: %s", file,
		textfmt.Count(len(names), "tensor"), strings.Join(names[:min(len(names), 8)], ", ")))
}
