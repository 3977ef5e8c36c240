package cli

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/models/longtest"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
)

// madeUp creates files of zeros as MNIST and CIFAR-10, so that presets can be prepared without the data. The files are
// sparse.
func madeUp(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	put := func(set, name string, head []byte, size int64) {
		path := filepath.Join(home, set, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, head, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(len(head))+size); err != nil {
			t.Fatal(err)
		}
	}
	files := func(set string) []string {
		known, err := data.Lookup(set)
		if err != nil {
			t.Fatal(err)
		}
		return known.Files
	}
	idx := func(dims ...uint32) []byte {
		out := []byte{0, 0, 8, byte(len(dims))}
		for _, d := range dims {
			out = binary.BigEndian.AppendUint32(out, d)
		}
		return out
	}
	for i, n := range []uint32{60000, 60000, 10000, 10000} { // pictures and labels, of training and test
		if i%2 == 0 {
			put("mnist", files("mnist")[i], idx(n, 28, 28), int64(n)*28*28)
		} else {
			put("mnist", files("mnist")[i], idx(n), int64(n))
		}
	}
	for _, name := range files("cifar10") {
		put("cifar10", name, nil, 10000*(1+3*32*32))
	}
	t.Setenv("BROOD_DATA", home)
}

// prepareForm prepares `brood run NAME FLAG...`, without the time estimate, which needs a measurement.
func prepareForm(t *testing.T, name string, flags ...string) (*host.Job, error) {
	t.Helper()
	f, c := &runFlags{}, &cobra.Command{}
	f.register(c)
	if err := c.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	o, err := f.options(c, name)
	if err != nil {
		return nil, err
	}
	if o.Limit == (event.Limit{}) {
		t.Errorf("%s %v has no end", name, flags)
	}
	o.Limit = event.Limit{Seconds: 1}
	return host.Prepare(o)
}

// TestFullForms: each preset of a study has a full form that differs from the short one, or a reason why it has none. A
// full form passes every check of a run: model, data, knobs with their schedules, and the check of the algorithm. One
// full form is prepared, and with BROOD_LONG=studies one of each study.
func TestFullForms(t *testing.T) {
	madeUp(t)
	prepared := map[string]bool{}
	for _, name := range presets.List() {
		p, err := presets.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case p.Study == "":
			continue
		case p.Full == nil:
			t.Errorf("%s is of the study %s, and has no full form and no word on why", name, p.Study)
			continue
		case p.Full.None != "":
			if _, err := prepareForm(t, name, "--full"); err == nil || !strings.Contains(err.Error(), p.Full.None) {
				t.Errorf("%s says that it has no full form, and asked for it: %v", name, err)
			}
			continue
		}
		full, err := p.InFull()
		if same := full.Options.Limit.Rounds == p.Options.Limit.Rounds &&
			full.Options.Limit.Epochs == p.Options.Limit.Epochs && full.Options.Members == p.Options.Members &&
			full.Options.Model == p.Options.Model; err != nil || same && slices.Equal(full.Settings(), p.Settings()) {
			t.Errorf("%s in full is its short form: %v", name, err)
			continue
		}
		if prepared[p.Study] || len(prepared) > 0 && !longtest.On(longtest.Studies) {
			continue
		}
		prepared[p.Study] = true
		job, err := prepareForm(t, name, "--full")
		if err != nil {
			t.Errorf("%s in full: %v", name, err)
			continue
		}
		if back, isFull, err := presets.Recorded(job.Config.Preset); err != nil || !isFull || back.Name != name {
			t.Errorf("%s in full is recorded as %q: %v", name, job.Config.Preset, err)
		}
	}
}
