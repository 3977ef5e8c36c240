package view_test

import (
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// TestLean: a lean view has medians as its values, before and after encoding, with the size of one member.
func TestLean(t *testing.T) {
	full := view.New()
	for _, r := range sourcetest.Run(16, 6000) { // more rounds than a track has buckets
		full.Apply(r)
	}
	lean := full.Lean()
	text, err := cbor.Marshal(lean)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := cbor.Marshal(full)
	if len(text) > len(whole)/8 {
		t.Errorf("it takes %d bytes, and the view of 16 members %d", len(text), len(whole))
	}
	var back view.View
	if err := cbor.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	for i := range full.Series {
		f := &full.Series[i]
		want := f.Band(view.Even(0, 6001, 77))
		if len(f.Members) > 0 {
			want = f.Median(view.Even(0, 6001, 77))
		}
		for _, v := range []*view.View{lean, &back} {
			if s := v.Find(f.Name); len(s.Members) > 0 || !reflect.DeepEqual(s.Band(view.Even(0, 6001, 77)), want) {
				t.Errorf("%s is not the median of the members", f.Name)
			}
		}
	}
	if len(full.Find("loss").Members) != 16 {
		t.Error("the view that it was made of has lost its members")
	}
}
