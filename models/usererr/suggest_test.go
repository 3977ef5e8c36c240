package usererr

import "testing"

func TestSuggest(t *testing.T) {
	there := []string{"parle", "dp-sgd", "popsgd", "papa", "pbt", "quickstart", "test_loss", "centre_loss", "train_loss"}
	for name, want := range map[string]string{
		"parl":       "parle",
		"pralle":     "parle",
		"Parle":      "parle",
		"dp_sgd":     "dp-sgd",
		"dpsgd":      "dp-sgd",
		"quikstrat":  "quickstart",
		"quickstarz": "quickstart",
		"pb":         "pbt",
		"quick":      "quickstart",
		"Dp":         "dp-sgd",
		"sgd":        "dp-sgd",
		"loss":       "test_loss, centre_loss or train_loss",
		"p":          "",
		"pa":         "",
		"adam":       "",
		"slowstart":  "",
		"x":          "",
		"":           "",
	} {
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got := Suggest(name, there); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "bca", 2},
		{"kitten", "sitting", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
