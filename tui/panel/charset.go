package panel

import "strings"

// DetectCharset decides what is written where nobody said so.
func (o *Options) DetectCharset(env []string) { o.ASCII = o.ASCII || !o.Unicode && ASCIIOnly(env) }

// ASCIIOnly reports whether a terminal shows no more than ASCII, as its environment of "K=V" has it: a Linux console,
// whose font lacks most of what charts are drawn with, or a locale of another encoding than UTF-8. Without a locale it
// is taken for UTF-8.
func ASCIIOnly(env []string) bool {
	of := map[string]string{}
	for _, e := range env {
		if k, v, ok := strings.Cut(e, "="); ok && v != "" {
			of[k] = v
		}
	}
	if of["TERM"] == "linux" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set counts
		if v := of[name]; v != "" {
			return !strings.Contains(strings.ReplaceAll(strings.ToLower(v), "-", ""), "utf8")
		}
	}
	return false
}
