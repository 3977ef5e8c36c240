package option_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
	"brood/runtime/option"
)

// before is the configuration of a session that was recorded before there was a table, without its layers.
const before = "b718230101696d696e652e746f6d6c0267736f66746d617803600466676c79706873056b626c616b65333a65383039060107" +
	"656633322f310819100009050a000b66736872696e6b0c600d000e191eaa0f0010a1000612192af8131903e8141907d0151a" +
	"03839d0018186a7061643d322c666c6970181a6473746f70"

// TestConfigurationOfBefore: it is read as the options that it was told, and written with the same bytes.
func TestConfigurationOfBefore(t *testing.T) {
	text, err := hex.DecodeString(before)
	if err != nil {
		t.Fatal(err)
	}
	var c event.Config
	if err := cbor.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	o, err := option.Recorded(c)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{"model": "softmax", "data": "glyphs", "augment": "pad=2,flip", "rounds": "6", "seed": "1",
		"on-loss": "shrink", "on-trouble": "stop", "probe": "5"}
	for _, x := range option.All {
		if got := x.Text(o); got != told[x.Name] {
			t.Errorf("%s is %q, want %q", x.Name, got, told[x.Name])
		}
		if x.Has(option.Logged) {
			x.Copy(&o, option.Options{}) // and told anew
			if err := x.Set(&o, told[x.Name]); err != nil && told[x.Name] != "" {
				t.Error(err)
			}
		}
	}
	again := c
	option.Options{}.Record(&again)
	if again.Model+again.Data+again.Augment+again.OnLoss+again.OnTrouble != "" || again.Limit != (event.Limit{}) || again.Seed+again.Probe != 0 {
		t.Errorf("nothing told is recorded as %+v", again)
	}
	o.Record(&again)
	if out, err := cbor.Marshal(again); err != nil || !bytes.Equal(out, text) {
		t.Errorf("written as %x, %v", out, err)
	}
}
