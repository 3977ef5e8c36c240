package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

func mcpCommand(s streams) *cobra.Command {
	var a agent
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent read and steer your runs: a server of the Model Context Protocol on standard input and output",
		Long: "Serve the Model Context Protocol on standard input and output: a client starts this command, and its " +
			"agent reads, steers,\n" +
			"forks and verifies your runs. docs/agents.md lists the tools. Runs that it starts are processes of their " +
			"own and continue\n" +
			"when it ends.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if s.terminal {
				return usage("brood mcp is for programs: name it in the configuration of a client of the Model Context " +
					"Protocol, as in docs/agents.md")
			}
			if _, err := authorName(a.as); err != nil {
				return err
			}
			to := &mcp.IOTransport{Reader: s.in, Writer: unclosed{exact(s.out)}}
			if err := ignoreEnd(a.server().Run(c.Context(), to)); err != nil {
				return usage("standard input is no message of the Model Context Protocol: %w; a client starts brood mcp, as in "+
					"docs/agents.md", err)
			}
			return nil
		},
	}
	programFlags(c.Flags(), &a.program)
	c.Flags().BoolVar(&a.readOnly, "read-only", false, "reject all tools that change or start a run")
	c.Flags().BoolVar(&a.take, "take", false, "take the writer's lease from its holder")
	asFlag(c, &a.as)
	return c
}

// unclosed is a stream that is not closed with its connection.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// agent is the server of an agent: the tools of `brood mcp`. A tool executes a command of brood in this process and
// returns its output or its error, so that an agent and a person are accepted and rejected alike.
type agent struct {
	as       string // --as: the author of commands in the log
	take     bool   // --take
	readOnly bool   // tools that change or start a run are rejected
	program  string // --program: for sessions of an objective or a program; "" for none
}

// agentTool is a tool of an agent.
type agentTool struct {
	name, doc string
	changes   bool // it changes or starts a run
	schema    *jsonschema.Schema
	call      func(context.Context, json.RawMessage) (string, error)
}

// toolOf returns a tool. Arguments is a struct of its arguments, which [argumentDocs] describes. call returns the text
// for the agent.
func toolOf[Arguments any](
	name, doc string, changes bool, call func(context.Context, Arguments) (string, error),
) agentTool {
	schema, err := jsonschema.For[Arguments](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {Types: []string{"number", "string", "boolean"}},
	}})
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	for key, p := range schema.Properties {
		p.Description = argumentDocs[key]
		if len(p.Types) == 2 && p.Types[0] == "null" { // of lists and maps, which may simply be left out
			p.Type, p.Types = p.Types[1], nil
		}
	}
	return agentTool{name, doc, changes, schema, func(ctx context.Context, raw json.RawMessage) (string, error) {
		var in Arguments
		if err := decodeArguments(raw, schema, &in); err != nil {
			return "", err
		}
		return call(ctx, in)
	}}
}

// decodeArguments decodes the arguments of a tool. It fails like [decodeObject], and if a required one is missing.
func decodeArguments(raw json.RawMessage, schema *jsonschema.Schema, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := decodeObject(raw, into); err != nil {
		return usage("%w", err)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return err
	}
	for _, key := range schema.Required {
		if text := string(given[key]); text == "" || text == `""` || text == "null" {
			return usage("%s is missing: %s", key, schema.Properties[key].Description)
		}
	}
	return nil
}

// agentInstructions introduce the tools to an agent.
const agentInstructions = "brood trains models with populations. A run records a session, named by its directory; " +
	"every change of a run is in its log with its author and reason, and verify_run recomputes it bit for bit. Read a " +
	"run before you change it: read_run gives its knobs with bounds. To try something, fork a round of a run rather " +
	"than change the run: forks are new runs with a recorded parent, and compare_runs shows which is better."

// server returns the server of the Model Context Protocol with the tools of the agent.
func (a *agent) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "brood", Version: versionText()},
		&mcp.ServerOptions{Instructions: agentInstructions, Capabilities: &mcp.ServerCapabilities{}})
	for _, t := range a.tools() {
		s.AddTool(&mcp.Tool{Name: t.name, Description: t.doc, InputSchema: t.schema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.changes}}, a.handler(t))
	}
	return s
}

var errToolReadOnly = errors.New("served with --read-only: start brood mcp without it to change or start runs")

// handler answers the calls of a tool. Errors are results that the agent reads, one sentence each.
func (a *agent) handler(t agentTool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := "", errToolReadOnly
		if !t.changes || !a.readOnly {
			text, err = t.call(ctx, r.Params.Arguments)
		}
		if err != nil {
			text = sentence(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: err != nil}, nil
	}
}
