package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagTypesHaveWords: kinds has a description for the type of every flag, which errors use.
func TestFlagTypesHaveWords(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); kind != "stringArray" && kinds[kind] == "" { // which takes any text
				t.Errorf("%s --%s: no words say what %s is", c.CommandPath(), f.Name, kind)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(streams{}))
}
