package option_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
	"brood/runtime/option"
)

// oldConfig is a configuration without layers, recorded before the table of options existed.
const oldConfig = "b718230101696d696e652e746f6d6c0267736f66746d617803600466676c79706873056b626c616b65333a65383039060107" +
	"656633322f310819100009050a000b66736872696e6b0c600d000e191eaa0f0010a1000612192af8131903e8141907d0151a" +
	"03839d0018186a7061643d322c666c6970181a6473746f70"

// TestOldConfiguration: it is read as its options and written as the same bytes.
func TestOldConfiguration(t *testing.T) {
	text, err := hex.DecodeString(oldConfig)
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
	options := map[string]string{"model": "softmax", "data": "glyphs", "augment": "pad=2,flip", "rounds": "6", "seed": "1",
		"on-loss": "shrink", "on-trouble": "stop", "probe": "5"}
	for _, x := range option.All {
		if got := x.Text(o); got != options[x.Name] {
			t.Errorf("%s is %q, want %q", x.Name, got, options[x.Name])
		}
		if x.Has(option.Logged) {
			x.Copy(&o, option.Options{}) // set it again
			if err := x.Set(&o, options[x.Name]); err != nil && options[x.Name] != "" {
				t.Error(err)
			}
		}
	}
	config := c
	option.Options{}.Record(&config)
	if config.Model+config.Data+config.Augment+config.OnLoss+config.OnTrouble != "" || config.Limit != (event.Limit{}) || config.Seed+config.Probe != 0 {
		t.Errorf("no options are recorded as %+v", config)
	}
	o.Record(&config)
	if out, err := cbor.Marshal(config); err != nil || !bytes.Equal(out, text) {
		t.Errorf("written as %x, %v", out, err)
	}
}
