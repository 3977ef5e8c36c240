package longtest

import "testing"

func TestSelects(t *testing.T) {
	for _, c := range []struct {
		value string
		group Group
		on    bool
		fails bool
	}{
		{value: "", group: Fleets},
		{value: "fleets", group: Fleets, on: true},
		{value: "kernels", group: Fleets},
		{value: "kernels,fleets", group: Fleets, on: true},
		{value: "all", group: Fleets, on: true},
		{value: "1", group: Fleets, fails: true},
		{value: "fleets,flets", group: Fleets, fails: true},
		{value: "all", group: "flets", fails: true},
	} {
		on, err := selects(c.value, c.group)
		if (err != nil) != c.fails || err == nil && on != c.on {
			t.Errorf("selects(%q, %q) = %t, %v", c.value, c.group, on, err)
		}
	}
}
