package cli

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// agentClient is a client of the Model Context Protocol, as an agent has one.
type agentClient struct {
	t *testing.T
	*mcp.ClientSession
}

// newAgentClient returns a client of the server of a, in memory.
func newAgentClient(t *testing.T, a *agent) agentClient {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	server, err := a.server().Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Wait()
	})
	return agentClient{t, client}
}

// call calls a tool with arguments in JSON. failed reports that the text is an error.
func (c agentClient) call(tool, arguments string) (text string, failed bool) {
	c.t.Helper()
	text, failed, err := callTool(c.t.Context(), c.ClientSession, tool, arguments)
	if err != nil {
		c.t.Fatal(err)
	}
	return text, failed
}

func callTool(ctx context.Context, s *mcp.ClientSession, tool, arguments string) (text string, failed bool, err error) {
	call := &mcp.CallToolParams{Name: tool}
	if arguments != "" {
		call.Arguments = json.RawMessage(arguments)
	}
	res, err := s.CallTool(ctx, call)
	if err != nil {
		return "", false, err
	}
	for _, c := range res.Content {
		text += c.(*mcp.TextContent).Text
	}
	return text, res.IsError, nil
}

// mcpCall runs brood mcp and calls a tool of it: mcp [FLAG...] TOOL ARGUMENTS. It prints the text; with ! the tool must
// fail.
func mcpCall(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: mcp [FLAG...] TOOL ARGUMENTS")
	}
	flags, tool, arguments := args[:len(args)-2], args[len(args)-2], args[len(args)-1]
	var binary string
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "brood")); err == nil && binary == "" {
			binary = filepath.Join(dir, "brood")
		}
	}
	c := exec.Command(binary, append([]string{"mcp"}, flags...)...)
	c.Dir, c.Stderr = ts.MkAbs("."), os.Stderr
	for _, name := range []string{"PATH", "HOME", "BROOD_SESSIONS", "BROOD_DATA", "TMPDIR"} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	ctx := context.Background()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, &mcp.CommandTransport{Command: c}, nil)
	ts.Check(err)
	text, failed, err := callTool(ctx, s, tool, arguments)
	ts.Check(err)
	ts.Check(s.Close())
	_, err = ts.Stdout().Write([]byte(text))
	ts.Check(err)
	if failed != neg {
		ts.Fatalf("%s: %s", tool, text)
	}
}

var toolRows = regexp.MustCompile("(?m)^\\| `[a-z]+_[a-z]+` \\|")

// TestAgentTools: a client sees the tools that docs/agents.md lists, in its order, and each states what it takes.
func TestAgentTools(t *testing.T) {
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	c := newAgentClient(t, &agent{})
	listed, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]string{}
	for _, x := range listed.Tools {
		if changes[x.Name] = "yes"; x.Annotations.ReadOnlyHint {
			changes[x.Name] = ""
		}
		schema := x.InputSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			if p.(map[string]any)["description"] == nil || p.(map[string]any)["type"] == nil {
				t.Errorf("%s: its argument %s has no description or no type", x.Name, name)
			}
		}
	}
	var want []string
	for _, x := range (&agent{}).tools() {
		want = append(want, "| `"+x.name+"` | "+changes[x.name])
	}
	if len(want) != len(changes) {
		t.Errorf("%d tools, the client sees %d", len(want), len(changes))
	}
	at := 0
	for line := range strings.Lines(string(page)) {
		if at < len(want) && strings.HasPrefix(line, want[at]) {
			at++
		}
	}
	if at < len(want) || len(toolRows.FindAll(page, -1)) != len(want) {
		t.Errorf("agents.md has no row %q in its place, or rows of other tools", want[min(at, len(want)-1)])
	}
}

// TestAgentReads: tools print what the commands print, of a recorded run.
func TestAgentReads(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	home := os.Getenv("BROOD_SESSIONS")
	for _, args := range [][]string{
		append(tinyRun, "--session", home+"/one"),
		{"fork", "one", "--at", "1", "--rounds", "4", "--set", "eta=0.05", "--why", "smaller", "--as", "ann",
			"--session", home + "/two"},
	} {
		if status, _, stderr := typing(args...); status != 0 {
			t.Fatal(stderr)
		}
	}
	c := newAgentClient(t, &agent{readOnly: true})
	var calls sync.WaitGroup
	for _, x := range []struct {
		tool, arguments string
		like            []string // the command line
		says            []string
	}{
		{"list_runs", ``, []string{"sessions", "--json"}, nil},
		{"list_runs", `{"limit":1}`, nil, []string{`"name":"two"`, `"parent":"one","parent_round":1`,
			"1 older sessions are not listed"}},
		{"compare_runs", `{"sessions":["one","two"]}`, []string{"compare", "one", "two"}, nil},
		{"list_presets", `{}`, []string{"presets"}, nil},
		{"list_presets", `{"preset":"quickstart"}`, []string{"presets", "show", "quickstart"}, nil},
		{"list_algorithms", `{"algorithm":"parle"}`, []string{"algorithms", "parle"}, nil},
		{"verify_run", `{"session":"two"}`, nil, []string{`"event":"verified"`, `"params_hash":"blake3:`}},
		{"chart_runs", `{"sessions":["one","two"],"series":["loss","centre.loss"],"points":2,"by":"step"}`, nil,
			[]string{"loss, by step", "centre.loss, by step", "\na  one  ", "\nb  two  ", `"event":"curve"`, `"x":[`}},
		{"read_run", `{"session":"two"}`, nil, []string{`"running":false`, `"parent":"one","parent_round":1`,
			`"by":"ann","event":"edit","knob":"eta","round":2,"value":"0.05"`, `"phase":"finished"`,
			`"notes":[{"round":2,"text":"smaller"}]`, `"max":100,"min":0,"name":"eta"`}},
	} {
		calls.Go(func() { // a client sends calls without waiting
			text, failed, err := callTool(t.Context(), c.ClientSession, x.tool, x.arguments)
			if failed || err != nil {
				t.Errorf("%s %s: %s, %v", x.tool, x.arguments, text, err)
			}
			if x.like != nil {
				if _, out, _ := typing(x.like...); text != out {
					t.Errorf("%s %s is\n%s\nwant, as of the command\n%s", x.tool, x.arguments, text, out)
				}
			}
			for _, words := range x.says {
				if !strings.Contains(text, words) {
					t.Errorf("%s %s has no %s:\n%s", x.tool, x.arguments, words, text)
				}
			}
		})
	}
	calls.Wait()
}

// TestAgentIsRejected: invalid arguments have one sentence that names them, and change nothing.
func TestAgentIsRejected(t *testing.T) {
	home := t.TempDir()
	t.Setenv("BROOD_SESSIONS", home)
	changing := map[string]string{
		"set_knobs":    `{"session":"a","set":{"eta":1},"why":"x"}`,
		"control_run":  `{"session":"a","action":"stop","why":"x"}`,
		"fork_run":     `{"session":"a","at":1,"why":"x"}`,
		"start_run":    `{}`,
		"continue_run": `{"session":"a"}`,
	}
	reader := newAgentClient(t, &agent{readOnly: true})
	for _, x := range (&agent{}).tools() {
		arguments, ok := changing[x.name]
		if ok != x.changes {
			t.Errorf("%s changes runs: %v, and is tested as %v", x.name, x.changes, ok)
		}
		if text, failed := reader.call(x.name, arguments); ok && (!failed || !strings.Contains(text, "--read-only")) {
			t.Errorf("%s with --read-only: %s", x.name, text)
		}
	}
	c := newAgentClient(t, &agent{})
	for _, x := range [][3]string{
		{"read_run", `{}`, "session is missing: name, path or URL of a session"},
		{"read_run", `{"session":null}`, "session is missing"},
		{"read_run", `{"sesion":"a"}`, `unknown field "sesion"`},
		{"read_run", `{"session":["a"]}`, "session is a list: give a text"},
		{"read_run", `{"session":"--help"}`, `there is no session "--help"`},
		{"read_run", `{"session":"a","seconds":3}`, "seconds is for waiting: give the round too"},
		{"read_run", `{"session":"a","seconds":3e9,"round":1}`, "seconds is 3e+09: give up to 600"},
		{"list_runs", `{"limit":-1}`, "limit is -1: give 1 or more"},
		{"chart_runs", `{"sessions":[]}`, "sessions is empty"},
		{"chart_runs", `{"sessions":"a"}`, "sessions is text: give a list"},
		{"chart_runs", `{"sessions":["a"],"by":"week"}`, "week"},
		{"chart_runs", `{"sessions":["a"],"size":"1x1"}`, "from 20x5 to 400x120"},
		{"chart_runs", `{"sessions":["a"],"points":1001}`, "points is 1001: give 1 to 1000"},
		{"set_knobs", `{"session":"a","set":{"eta":1}}`, "why is missing: the reason"},
		{"set_knobs", `{"session":"a","set":{"eta":1},"why":""}`, "why is missing: the reason"},
		{"set_knobs", `{"session":"a","set":{"eta":[1]},"why":"x"}`, "eta: [1] is not a value of a knob"},
		{"set_knobs", `{"session":"a","set":{},"why":"x"}`, "set needs a SESSION or URL and NAME=VALUE"},
		{"set_knobs", `{"session":"a","set":{"eta":1},"why":"x"}`, `there is no session "a"`},
		{"control_run", `{"session":"a","action":"kill","why":"x"}`, `action "kill": give pause, resume, save or stop`},
		{"fork_run", `{"session":"a","at":0,"why":"x"}`, "fork needs --at ROUND, 1 or more"},
		{"fork_run", `{"session":"a","at":2,"why":"two\nlines"}`, "unprintable characters"},
		{"fork_run", `{"session":"a","at":2,"why":"x","options":{"model":"mlp"}}`, "unknown flag: --model"},
		{"start_run", `{"options":{"program":"touch x"}}`, "option program executes a command"},
		{"start_run", `{"options":{"objective":"touch x"}}`, "option objective executes a command"},
		{"start_run", `{"options":{"on-alert":"touch x"}}`, "option on-alert executes a command"},
		{"start_run", `{"options":{"session":"x"}}`, `no option "session"`},
		{"start_run", `{"options":{"rouds":3}}`, "did you mean rounds?"},
		{"start_run", `{"options":{"rounds":[3]}}`, "option rounds: [3] is not a value"},
		{"start_run", `{"options":{"rounds":0}}`, "--rounds 0: give 1 or more"},
		{"start_run", `{"name":"../x"}`, `name "../x": give a name without slashes`},
		{"start_run", `{"preset":"--full"}`, `no preset "--full"`},
		{"continue_run", `{"session":"a"}`, `there is no session "a"`},
	} {
		text, failed := c.call(x[0], x[1])
		if !failed || !strings.Contains(text, x[2]) || strings.ContainsAny(text, "\n") {
			t.Errorf("%s %s: %q, want %q", x[0], x[1], text, x[2])
		}
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestAwaitWaitingRun: an agent that waits for a round also waits while the run does: it starts, or lacks workers.
func TestAwaitWaitingRun(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	srv := control.NewServer(s.Dir(), view.New(), nil)
	l, err := control.Listen(s.Dir())
	if err != nil {
		t.Skip("no Unix sockets here: " + err.Error())
	}
	srv.Serve(l)
	defer srv.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Watch(event.Record{State: &event.State{Phase: event.Training}})
		srv.Watch(event.Record{State: &event.State{Phase: event.Waiting}})
		time.Sleep(10 * time.Millisecond) // await may ask before
		srv.Watch(event.Record{Commit: &event.Commit{To: 5, Rounds: 5, Progress: event.Progress{Rounds: 5}}})
	}()
	err = (&agent{}).await(t.Context(), s.Dir(), 5, time.Minute)
	if rounds := srv.View().Progress.Rounds; err != nil || rounds != 5 {
		t.Errorf("after round %d: %v", rounds, err)
	}
	<-done
}
