package usererr

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestOutermostMark(t *testing.T) {
	inner := Errorf("eta: %w", fs.ErrNotExist)
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("x"), false},
		{inner, true},
		{fmt.Errorf("preset: %w", inner), true},
		{Recorded(inner), false},
		{fmt.Errorf("verify: %w", Recorded(inner)), false},
		{Error(Recorded(inner)), true},
		{errors.Join(errors.New("x"), inner), true},
	} {
		if Is(c.err) != c.want {
			t.Errorf("%v: Is returns %v", c.err, !c.want)
		}
	}
	if Error(nil) != nil || Recorded(nil) != nil {
		t.Error("a mark on no error is an error")
	}
	if !errors.Is(Recorded(inner), fs.ErrNotExist) || inner.Error() != "eta: file does not exist" {
		t.Errorf("%v hides what it wraps", inner)
	}
}
