package gpu_test

import (
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/enginetest"
	"brood/models/gpu"
	"brood/models/gpu/ptxtest"
)

func TestTryContract(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, m *models.Model, d *data.Set, _ int) enginetest.Engine {
		e, err := gpu.New(ptxtest.New(), m, d)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	})
}
