package remote

import (
	"path/filepath"
	"testing"

	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/transport/identity"
)

// TestSeveralURLs: a worker whose first URL leads nowhere joins by the second one.
func TestSeveralURLs(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	cfg := s.config()
	cfg.Others = []identity.Join{cfg.Join}
	cfg.Join.Address, cfg.Join.Token = "nowhere.invalid:4433", "another"
	end := s.work(t.Context(), cfg)
	if exit := s.train(); exit.Phase != event.Finished {
		t.Errorf("%+v", exit)
	}
	if err := testutil.Receive(t, end, "end of the worker"); err != nil {
		t.Error(err)
	}
}
