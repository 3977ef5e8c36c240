package panel

import "strings"

// DetectCharset sets ASCII from the environment, unless ASCII or Unicode is set already.
func (o *Options) DetectCharset(env []string) { o.ASCII = o.ASCII || !o.Unicode && ASCIIOnly(env) }

// ASCIIOnly reports whether a terminal with the environment env of "K=V" cannot show more than ASCII: a Linux console,
// whose font lacks most characters of the charts, or a locale with another encoding than UTF-8. Without a locale it
// assumes UTF-8.
func ASCIIOnly(env []string) bool {
	vars := map[string]string{}
	for _, e := range env {
		if k, v, ok := strings.Cut(e, "="); ok && v != "" {
			vars[k] = v
		}
	}
	if vars["TERM"] == "linux" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first one that is set takes precedence
		if v := vars[name]; v != "" {
			return !strings.Contains(strings.ReplaceAll(strings.ToLower(v), "-", ""), "utf8")
		}
	}
	return false
}
