package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
)

// node runs a module with the packages in BROOD_NODE, a directory where npm installed them, and returns its lines.
func node(t *testing.T, need, module string, args ...string) []string {
	t.Helper()
	dir := os.Getenv("BROOD_NODE")
	if dir == "" {
		t.Skip("BROOD_NODE is not set: the directory in which npm installed hyparquet and protobufjs")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", need)); err != nil {
		t.Skipf("%s is not installed in BROOD_NODE", need)
	}
	c := exec.Command("node", append([]string{"--input-type=module", "-e", module, "--"}, args...)...)
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func write(t *testing.T, name string, put func(*os.File) error) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := put(f); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// longer is a run with a swap, a knob change and a test.
func longer() *maker {
	m := begin()
	for range 6 {
		m.commit(1)
	}
	m.put(event.Record{Edit: &event.Edit{At: 14, Algorithm: "dp-sgd", Knob: "momentum", Expr: "0.5", By: "ann"}})
	m.commit(1)
	m.commit(1)
	m.plan(event.Workers, 16, "parle", 2)
	m.put(event.Record{Points: &event.Points{
		Round:   17,
		Series:  view.CentreLoss,
		Members: []engine.Member{view.Whole},
		Values:  []float64{math.Inf(1)},
	}})
	m.commit(1)
	return m
}

// TestParquetIsRead: another implementation reads the table from Parquet: types, nulls, and values that are not finite.
func TestParquetIsRead(t *testing.T) {
	for name, table := range map[string]*Table{"rounds": Rounds([]*Run{longer().run(t)}),
		"members": Members([]*Run{longer().run(t)})} {
		file := write(t, name, func(f *os.File) error { return Parquet(f, table) })
		lines := node(t, "hyparquet", `
import { asyncBufferFromFile, parquetReadObjects, parquetMetadataAsync } from 'hyparquet'
const file = await asyncBufferFromFile(process.argv[process.argv.length - 1])
const meta = await parquetMetadataAsync(file)
console.log(JSON.stringify({ names: meta.schema.slice(1).map(s => s.name), meta: Object.fromEntries(meta.key_value_metadata.map(k => [k.key, JSON.parse(k.value)])) }))
for (const row of await parquetReadObjects({ file })) {
  console.log(JSON.stringify(row, (k, v) => typeof v === 'bigint' ? Number(v) : typeof v === 'number' && !isFinite(v) ? String(v) : v))
}`, file)
		var head struct {
			Names []string
			Meta  struct {
				Columns  []struct{ Name, Unit string }          `json:"brood.columns"`
				Sessions []struct{ Settings map[string]string } `json:"brood.sessions"`
			}
		}
		if err := json.Unmarshal([]byte(lines[0]), &head); err != nil {
			t.Fatal(err)
		}
		if len(head.Meta.Columns) != len(table.Columns) || head.Meta.Sessions[0].Settings["seed"] != "7" ||
			head.Meta.Columns[6].Unit != "s" {
			t.Errorf("%s: the metadata is %+v", name, head.Meta)
		}
		n := 0
		err := table.Each(func(row []any) error {
			n++
			got := map[string]any{}
			if err := json.Unmarshal([]byte(lines[n]), &got); err != nil {
				return err
			}
			for i, c := range table.Columns {
				if head.Names[i] != c.Name {
					return fmt.Errorf("column %d is %s, want %s", i, head.Names[i], c.Name)
				}
				x := row[i]
				switch v := x.(type) {
				case int64:
					if x = float64(v); c.Kind == Time {
						x = strings.Replace(stamp(v), "Z", ".000Z", 1)
					}
				case float64:
					if v-v != 0 {
						x = strings.TrimPrefix(map[bool]string{true: "NaN", false: "Infinity"}[math.IsNaN(v)], "+")
					}
				}
				if got[c.Name] != x {
					t.Errorf("%s, row %d: %s is %v, want %v", name, n, c.Name, got[c.Name], x)
				}
			}
			return nil
		})
		if err != nil || n != len(lines)-1 {
			t.Errorf("%s: %d rows of %d lines, %v", name, n, len(lines), err)
		}
	}
}

// scalars reads an event file according to its format, with its checksums.
func scalars(t *testing.T, p []byte) (out []string) {
	t.Helper()
	sum := func(p []byte) uint32 {
		c := crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))
		return (c>>15 | c<<17) + 0xa282ead8
	}
	for len(p) > 0 {
		n := binary.LittleEndian.Uint64(p)
		body := p[12 : 12+n]
		if sum(p[:8]) != binary.LittleEndian.Uint32(p[8:]) || sum(body) != binary.LittleEndian.Uint32(p[12+n:]) {
			t.Fatal("a checksum is wrong")
		}
		p = p[16+n:]
		fields := parse(t, body)
		if s := fields[5]; s != nil {
			value := parse(t, parse(t, s[0].([]byte))[1][0].([]byte))
			if len(value[2]) > 0 {
				out = append(out, fmt.Sprintf("%v %s %v", fields[2][0], value[1][0], math.Float32frombits(value[2][0].(uint32))))
			} else {
				out = append(out, string(value[1][0].([]byte)))
			}
		}
	}
	return out
}

// parse returns the fields of a message.
func parse(t *testing.T, p []byte) map[protowire.Number][]any {
	t.Helper()
	out := map[protowire.Number][]any{}
	for len(p) > 0 {
		field, kind, n := protowire.ConsumeTag(p)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		p = p[n:]
		var x any
		switch kind {
		case protowire.VarintType:
			x, n = protowire.ConsumeVarint(p)
		case protowire.Fixed32Type:
			x, n = protowire.ConsumeFixed32(p)
		case protowire.Fixed64Type:
			x, n = protowire.ConsumeFixed64(p)
		case protowire.BytesType:
			x, n = protowire.ConsumeBytes(p)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		out[field], p = append(out[field], x), p[n:]
	}
	return out
}

// TestTensorBoard: the event file has the scalars with tags in TensorBoard's style, and knobs at the rounds of changes.
func TestTensorBoard(t *testing.T) {
	var b bytes.Buffer
	if err := TensorBoard(&b, longer().run(t), true); err != nil {
		t.Fatal(err)
	}
	got := scalars(t, b.Bytes())
	for _, line := range []string{"_hparams_/session_start_info", "1 loss/median 2.5", "1 loss/min 1", "4 test_error 25",
		"4 test_loss NaN", "17 loss/centre +Inf",
		"1 knob/eta 0.4", "2 knob/eta 0.3", "1 knob/momentum 0.9", "14 knob/momentum 0.9", "15 knob/momentum 0.5",
		"16 knob/momentum 0.5", "18 loss/member/1 0.11111111"} {
		if !slices.Contains(got, line) {
			t.Errorf("there is no %q", line)
		}
	}
	for _, line := range []string{"2 knob/momentum 0.9", "16 knob/momentum 0.9"} {
		if slices.Contains(got, line) {
			t.Errorf("there is %q", line)
		}
	}
}

// TestTensorBoardIsRead: protobufjs reads the event file with TensorFlow's event.proto and summary.proto, and
// TensorBoard's plugin_data.proto.
func TestTensorBoardIsRead(t *testing.T) {
	r := longer().run(t)
	file := write(t, r.EventFile(), func(f *os.File) error { return TensorBoard(f, r, false) })
	lines := node(t, "protobufjs", `
import protobuf from 'protobufjs'
import { readFileSync } from 'fs'
const root = protobuf.parse(`+"`"+`syntax = "proto3";
message Event { double wall_time = 1; int64 step = 2; oneof what { string file_version = 3; bytes graph_def = 4; Summary summary = 5; } }
message Summary { message Value { string node_name = 7; string tag = 1; oneof value { float simple_value = 2; } Metadata metadata = 9; } repeated Value value = 1; }
message Metadata { message PluginData { string plugin_name = 1; bytes content = 2; } PluginData plugin_data = 1; }
message HParams { int32 version = 1; oneof data { Start session_start_info = 3; End session_end_info = 4; } }
message Start { map<string, Struct> hparams = 1; string model_uri = 2; string monitor_url = 3; string group_name = 4; double start_time_secs = 5; }
message End { int32 status = 1; double end_time_secs = 2; }
message Struct { oneof kind { int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4; } }`+"`"+`, { keepCase: true }).root
const p = readFileSync(process.argv[process.argv.length - 1])
for (let at = 0; at < p.length;) {
  const n = Number(p.readBigUInt64LE(at))
  const e = root.lookupType('Event').decode(p.subarray(at + 12, at + 12 + n))
  at += 16 + n
  if (e.file_version) console.log(e.file_version)
  for (const v of e.summary?.value ?? []) {
    if (!v.metadata) { console.log(Number(e.step), e.wall_time, v.tag, v.simple_value); continue }
    const h = root.lookupType('HParams').decode(v.metadata.plugin_data.content)
    console.log(v.tag, v.metadata.plugin_data.plugin_name, JSON.stringify(h))
  }
}`, file)
	all := strings.Join(lines, "\n")
	for _, want := range []string{"brain.Event:2\n", "_hparams_/session_start_info hparams {", `"seed":{"number_value":7}`,
		`"model":{"string_value":"mlp"}`, "\n1 1000000002 loss/median 2.5\n", "\n4 1000000006 test_error 25"} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no %q in\n%s", want, all[:min(len(all), 3000)])
		}
	}
}
