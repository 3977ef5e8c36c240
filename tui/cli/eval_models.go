package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/runtime/evaluate"
	"brood/runtime/host"
	"brood/runtime/option"
)

// modelFlags holds the argument and the flags with which eval and predict select a model.
type modelFlags struct {
	what        string // a model file or a session
	model       string
	rename      string
	of          string // models of a session, separated by commas
	label, form string
	at          uint64
	threads     int
}

// register adds the flags of the model and of the data that it reads. ofDoc is the help text of --of.
func (f *modelFlags) register(c *cobra.Command, ofDoc string) {
	f.registerModel(c, ofDoc)
	fl := c.Flags()
	fl.StringVar(&f.label, option.Label.Name, "", option.Label.DocFor(c.Name()))
	fl.StringVar(&f.form, "form", "",
		"source of the normalisation and the class names if the file has none: a session, a model file, the training "+
			"data, or a .toml file (docs/model-files.md)")
}

func (f *modelFlags) registerModel(c *cobra.Command, ofDoc string) {
	fl := c.Flags()
	fl.StringVar(&f.model, "model", "", "model by name, or a layer list in a .toml file (default: from the file)")
	fl.StringVar(&f.rename, option.Rename.Name, "",
		"rename a tensor, or all of a layer, of the file: FROM=TO, several with commas")
	roundVar(fl, &f.at, "round of a session, or best, that of the lowest validation loss (default: the newest checkpoint)")
	fl.StringVar(&f.of, "of", "", ofDoc)
	threadsFlag(fl, &f.threads)
}

// open returns the model of a file, or the models of a session that --of selects, by default the centre.
func (f *modelFlags) open(c *cobra.Command, s streams) (all []*evaluate.Model, err error) {
	several := c.Flags().Changed("of")
	var selected []evaluate.Of
	if several {
		if selected, err = evaluate.ParseOf(f.of); err != nil {
			return nil, usage("--of: %v", err)
		}
	}
	dir, at, err := f.sessionRound(c)
	switch {
	case err != nil:
		return nil, err
	case dir == "" && several:
		return nil, usage("--of needs a session, and %s is a file", f.what)
	case several:
		return evaluate.ExportModels(c.Context(), nil, dir, at, selected, f.threads, noteRecomputed(s.err, time.Now()))
	}
	var t *evaluate.Model
	if dir == "" {
		t, err = evaluate.Open(f.what, f.model, f.rename)
	} else {
		t, err = evaluate.Export(c.Context(), nil, dir, at, f.threads, noteRecomputed(s.err, time.Now()))
	}
	return []*evaluate.Model{t}, err
}

// sessionRound returns the directory and the round of a session; "" for a model file. It fails if f.what is neither.
func (f *modelFlags) sessionRound(c *cobra.Command) (dir string, round uint64, err error) {
	if strings.HasSuffix(f.what, ".safetensors") || !isSession(f.what) {
		info, err := os.Stat(f.what)
		if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(f.what, ".safetensors") || err == nil && info.IsDir() {
			return "", 0, fmt.Errorf("%s is neither a file nor a session: `brood sessions` lists the sessions", f.what)
		}
		if c.Flags().Changed("at") {
			return "", 0, usage("--at needs a session, and %s is a file", f.what)
		}
		return "", 0, nil
	}
	for _, name := range []string{"model", option.Rename.Name} {
		if c.Flags().Changed(name) {
			return "", 0, usage("--%s needs a file: a session records its model", name)
		}
	}
	if dir, err = resolve(f.what); err != nil {
		return "", 0, err
	}
	if err := checkAt(c, f.at); err != nil {
		return "", 0, err
	}
	if err := evaluate.CheckPredicts(dir); err != nil {
		return "", 0, err
	}
	if round, err = roundOf(dir, f.at); err == nil {
		round, err = host.Checkpointed(dir, round)
	}
	return dir, round, err
}

// checkAt fails if --at is given and 0.
func checkAt(c *cobra.Command, at uint64) error {
	if c.Flags().Changed("at") && at == 0 {
		return usage("--at 0: give a round of 1 or more")
	}
	return nil
}

// isSession reports whether what is the name of a session and not of a file.
func isSession(what string) bool {
	if info, err := os.Stat(what); err == nil && !info.IsDir() {
		return false
	}
	_, err := resolve(what)
	return err == nil
}

// applyForm sets the preprocessing of a model from the source that --form names.
func applyForm(t *evaluate.Model, form string) error {
	if form == "" {
		return nil
	}
	known := slices.Contains(data.List(), form)
	switch dir, err := resolve(form); {
	case !known && isSession(form):
		form = dir
	case !known && !data.IsPath(form):
		return fmt.Errorf("--form %s: no data set has this name, and %w", form, err)
	}
	return t.ReadAs(form)
}

// missingForm returns the note that the preprocessing of the data set is used, since the file has none.
func missingForm(file, set string) string {
	return fmt.Sprintf("brood: %s has no normalisation and no class names: using those of data %s; --form names "+
		"another source\n",
		oneLine(file), oneLine(set))
}
