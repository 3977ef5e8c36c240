package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"brood/models/program"
	"brood/models/subprocess"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/tui/textfmt"
)

func checkCommand(s streams) *cobra.Command {
	var text, device string
	c := &cobra.Command{
		Use:   "check --program PROGRAM",
		Short: "Check a program that trains its own model: gradients, evaluations, repetition",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			command, err := subprocess.ParseCommand(option.Program.Name, text)
			if err != nil {
				return err
			}
			device, err := host.ProgramDevice(device)
			if err != nil {
				return err
			}
			t0 := time.Now()
			p, err := program.Open(c.Context(), command, device)
			if err != nil {
				return err
			}
			defer p.Close()
			if err := describeProgram(s.out, p, time.Since(t0)); err != nil {
				return err
			}
			bad := 0
			err = program.Check(c.Context(), p, func(f program.Finding) {
				word, note := "ok  ", f.Note
				if f.Err != nil {
					bad++
					word, note = "FAIL", f.Err.Error()
				}
				if note != "" {
					note = ": " + note
				}
				fmt.Fprintf(s.out, "%s  %s%s\n", word, f.What, oneLine(note))
			})
			if err == nil && bad > 0 {
				err = errors.New(textfmt.Count(bad, "check") + " failed")
			}
			return err
		},
	}
	c.Flags().StringVar(&text, option.Program.Name, "", "the `program` to check, such as 'python3 train.py'")
	c.Flags().StringVar(&device, option.Device.Name, "", "device of the program, such as cpu or cuda:0 (default: the "+
		"program chooses)")
	return c
}

// describeProgram prints the model, the samples, the library and the device of a program. took is its start time.
func describeProgram(w io.Writer, p *program.Program, took time.Duration) error {
	m, err := p.Model()
	if err != nil {
		return err
	}
	d, set := p.Description(), p.Data()
	statistics := ""
	if m.Layout.Stats > 0 {
		statistics = fmt.Sprintf(", %s statistics", textfmt.Grouped(m.Layout.Stats))
	}
	fmt.Fprintf(w, "%s: %s parameters in %s%s\n", oneLine(d.Name), textfmt.Grouped(m.Layout.Params),
		textfmt.Count(len(m.Layout.Tensors), "tensor"), statistics)
	fmt.Fprintf(w, "samples: %s for training, %s for validation, %s for tests\n", textfmt.Grouped(len(set.Train())),
		textfmt.Grouped(len(set.Validation())), textfmt.Grouped(len(set.Test())))
	_, err = fmt.Fprintf(w, "computes with %s on %s, started in %s\n", oneLine(d.Library), oneLine(d.Device),
		took.Round(10*time.Millisecond))
	return err
}
