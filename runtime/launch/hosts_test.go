package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseHosts(t *testing.T) {
	got, err := ParseHosts("a, eve@b:2222,10.0.0.7,::1,[fe80::2]:22,a")
	want := []Host{{"", "a", 0, 2}, {"eve", "b", 2222, 1}, {"", "10.0.0.7", 0, 1}, {"", "::1", 0, 1},
		{"", "fe80::2", 22, 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if Slots(got) != 6 || fmt.Sprint(got[1], got[4]) != "eve@b:2222 [fe80::2]:22" {
		t.Errorf("%d slots, %v", Slots(got), got)
	}
	for _, list := range []string{"", "a,,b", "@a", "eve@", "a:0", "a:port", "-oProxyCommand=touch /tmp/x", "-v@a", "a b",
		"a;reboot", "$(reboot)", strings.Repeat("a,", MaxSize) + "a"} {
		if got, err := ParseHosts(list); err == nil {
			t.Errorf("%.40q: %v", list, got)
		}
	}
}

func TestParseHostfile(t *testing.T) {
	for text, want := range map[string]string{
		"a slots=2\nb slots=4 max_slots=4 # fat\n\n# none\nc\n": "[{ a 0 2} { b 0 4} { c 0 1}]",
		"a:2\nb:4\n10.0.0.1:3\r\n::1\n":                         "[{ a 0 2} { b 0 4} { 10.0.0.1 0 3} { ::1 0 1}]",
		"a\na\nb\na slots=2\n":                                  "[{ a 0 4} { b 0 1}]",
		"eve@a max-slots=2 slots=1":                             "[{eve a 0 1}]",
	} {
		got, err := ParseHostfile(strings.NewReader(text))
		type bare Host // without Host.String
		var plain []bare
		for _, h := range got {
			plain = append(plain, bare(h))
		}
		if err != nil || fmt.Sprint(plain) != want {
			t.Errorf("%q: %v, %v; want %s", text, plain, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                              "names no host",
		"# only\n\n":                    "names no host",
		"a slots=2\nb slots\n":          `line 2: "slots" is unknown`,
		"a slots=0":                     `line 1: a has "0" slots`,
		"a slots=":                      `"slots=" is unknown`,
		"a slots=two":                   `"two" slots`,
		"a:2 slots=2":                   "is unknown",
		"a:":                            "write HOST:N",
		"a slots=4 max_slots=2":         "more than max_slots=2",
		"a cpu=2":                       `"cpu=2" is unknown`,
		"a\nslots=2\n":                  `line 2: "slots=2" is not a host`,
		"-oProxyCommand=x":              "is not a host",
		"a;b":                           "is not a host",
		"a slots=999\nb slots=999":      "1998 slots",
		strings.Repeat("x", 100_000):    "token too long",
		"a slots=1 slots=2":             "once each",
		"a slots=99999999999999999999":  "slots",
		"e!e@a":                         "is not a user name",
		"a max_slots=1 max_slots=2":     "once each",
		"a slots=-1":                    `"-1" slots`,
		"a slots=1 # x\n b=2 slots=3\n": "line 2",
	} {
		got, err := ParseHostfile(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzHostfile(f *testing.F) {
	f.Add("a slots=2\nb:4\neve@c max_slots=3 # x\n::1")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseHostfile(strings.NewReader(text))
		for _, h := range got {
			argv := SSH{[]string{"ssh"}, "brood"}.Command(h, "worker")
			if err == nil && (h.Slots < 1 || len(argv) != 7 || strings.HasPrefix(argv[5], "-")) {
				t.Errorf("%q gives %+v and %q", text, h, argv)
			}
		}
	})
}

func TestSSHCommand(t *testing.T) {
	s := SSH{[]string{"ssh", "-F", "conf"}, "/opt/my brood/it's"}
	got := s.Command(Host{"eve", "b", 2222, 1}, "worker", "-", "--threads", "2")
	want := []string{"ssh", "-F", "conf", "-T", "-o", "BatchMode=yes", "-p", "2222", "--", "eve@b",
		`'/opt/my brood/it'\''s' worker - --threads 2`}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestExplain(t *testing.T) {
	s, h := SSH{[]string{"ssh"}, "brood"}, Host{"eve", "b", 2222, 1}
	for _, c := range []struct {
		status       int
		stderr, want string
	}{
		{255, "eve@b: Permission denied (publickey).", "eve@b:2222 rejects your key (eve@b: Permission denied (publickey).): put it into authorized_keys there, and try `ssh -p 2222 -o BatchMode=yes eve@b true`"},
		{255, "Host key verification failed.", "compare its key once with `ssh -p 2222 eve@b`"},
		{255, "connect to host b port 2222: Connection refused", "cannot be reached by ssh (connect to host b port 2222: Connection refused)"},
		{127, "sh: 1: brood: not found", "has no brood (sh: 1: brood: not found): copy this binary"},
		{126, "Exec format error", "cannot execute brood"},
		{1, "the data is missing", "ended with status 1: the data is missing"},
	} {
		if err := s.Explain(h, c.status, c.stderr); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v; want %q", c.status, err, c.want)
		}
	}
}
