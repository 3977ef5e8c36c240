package host

import (
	"fmt"
	"path/filepath"

	"brood/models"
	"brood/models/data"
	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// FromSession rebuilds the job of the session in dir. It returns an error if the model, the data or the kernels are not
// available as they were recorded.
func FromSession(dir string, c event.Config) (*Job, error) { return (*Own)(nil).FromSession(dir, c) }

// FromSession is [FromSession] for a session of this graph or objective.
func (o *Own) FromSession(dir string, c event.Config) (*Job, error) {
	j, err := o.job(dir, c)
	return j, usererr.Recorded(err)
}

// job rebuilds the job of a configuration that was recorded in dir. If only the data or the engine is missing, or the
// data differ from those of the session, it returns the job together with the error.
func (o *Own) job(dir string, c event.Config) (*Job, error) {
	j, err := o.jobWithoutData(dir, c)
	if err != nil || j.Modelless() {
		return j, err
	}
	if j.own.trains() {
		if j.Samples, err = option.HoldOut(j.own.Program.Data(), option.Validation.Text(j.Options)); err != nil {
			return j, err
		}
		if err := j.own.sameKernels(c); err != nil && !o.anyKernels {
			return j, err
		}
	} else if j.own.Maximises() {
		j.Samples = j.own.Objective.Spec.Data()
	} else if err := j.load(c.Augment); err != nil {
		return j, err
	}
	if d := j.Samples.Digest(); d != c.Digest {
		return j, fmt.Errorf("data %s has digest %s, but the session was recorded on %s: restore those files",
			c.Data, d, c.Digest)
	}
	if !j.own.External() {
		_, err = selectedEngine(j.Config.Kernels)
	}
	return j, err
}

// jobWithoutData returns the job of a recorded configuration without its data. It does not check that this machine has
// an engine for it.
func (o *Own) jobWithoutData(dir string, c event.Config) (*Job, error) {
	if c.Version != logVersion {
		return nil, fmt.Errorf("the log of the session has version %d, and this brood reads version %d: use the brood that "+
			"recorded it (0 is a version before v0.1)", c.Version, logVersion)
	}
	options, err := option.Recorded(c)
	if err != nil {
		return nil, err
	}
	options.Preset = c.Preset
	if o, err = o.completed(c, options.Device); err != nil {
		return nil, err
	}
	j := &Job{Config: c, Options: options, own: o}
	if j.Modelless() {
		j.Net, j.Samples = &models.Model{}, &data.Set{}
		return j, nil
	}
	if o != nil || c.Own || c.Objective != "" || c.Program != "" {
		j.Net, err = o.recorded(c)
	} else {
		j.Net, err = models.FromSource(c.Model, []byte(c.ModelSpec))
	}
	if err != nil {
		return nil, err
	}
	if o.Maximises() {
		if have := o.measuredKernels(); c.Kernels != have {
			return nil, fmt.Errorf("the session was computed by kernels %s, and this brood has %s for objectives: execute "+
				"it with the brood that recorded it", c.Kernels, have)
		}
	}
	if c.Init != nil {
		path, err := session.Path(dir, c.Init.Path)
		if err != nil {
			return nil, err
		}
		if err := j.start(path); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// RecordedSamples returns the samples of the session in dir, in the splits that it trains on. It loads the data. It
// returns an error if they changed since the session was recorded, or if brood cannot read them itself.
func RecordedSamples(dir string) (*data.Set, error) {
	h, err := read(dir, 0)
	if err != nil {
		return nil, err
	}
	if h.config.Data == "" || h.config.Own || h.config.Objective != "" || h.config.Program != "" {
		return nil, fmt.Errorf("%s: the session has no data that brood can read itself: name another session",
			filepath.Base(dir))
	}
	j, err := (*Own)(nil).jobWithoutData(dir, h.config)
	if err == nil {
		err = j.load(h.config.Augment)
	}
	if err != nil {
		return nil, usererr.Recorded(err)
	}
	if d := j.Samples.Digest(); d != h.config.Digest {
		return nil, fmt.Errorf("%s: its data %s changed since it was recorded: restore those files",
			filepath.Base(dir), h.config.Data)
	}
	return j.Samples, nil
}
