package graph

import (
	"errors"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/longtest"
)

func TestContract(t *testing.T) {
	run := enginetest.Run
	if !longtest.On(longtest.Kernels) {
		run = enginetest.Part
	}
	run(t, func(t *testing.T, m *models.Model, d *data.Set, threads int) engine.Engine {
		t.Helper()
		e, err := New(m, d, threads)
		if u := new(UncoveredError); errors.As(err, &u) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}
