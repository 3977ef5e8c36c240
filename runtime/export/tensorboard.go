package export

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
)

// EventFile returns the name of the event file of a run. TensorBoard reads files with "tfevents" in their names, and
// shows the directory of such a file as a run.
func (r *Run) EventFile() string {
	return "events.out.tfevents." + strconv.FormatInt(r.begun/1e9, 10) + ".brood"
}

// Field numbers of the messages that TensorBoard reads: tensorflow/core/util/event.proto,
// tensorflow/core/framework/summary.proto, and tensorboard/plugins/hparams/plugin_data.proto.
const (
	eventTime, eventStep, eventVersion, eventSummary        = 1, 2, 3, 5
	summaryValue                                            = 1
	valueTag, valueSimple, valueMetadata                    = 1, 2, 9
	metadataPlugin                                          = 1
	pluginName, pluginContent                               = 1, 2
	hparamsVersion, hparamsStart, hparamsEnd                = 1, 3, 4
	startHparams, startGroup, startTime                     = 1, 4, 5
	endStatus, endTime                                      = 1, 2
	entryKey, entryValue, numberOfStruct, textOfStruct, yes = 1, 2, 2, 3, 1
)

// TensorBoard writes a run as an event file: scalars by round, with the times of the log, and the settings of the run
// as hyperparameters. members adds the values of each member. Values that are not finite are written too. Scalars are
// 32-bit floats, as the format requires.
func TensorBoard(w io.Writer, r *Run, members bool) error {
	out := &records{w: w}
	out.event(r.begun, 0, func(b []byte) []byte {
		return protowire.AppendString(protowire.AppendTag(b, eventVersion, protowire.BytesType), "brain.Event:2")
	})
	out.hparams(r)
	knobs := map[string]*turning{}
	table := Rounds([]*Run{r})
	err := table.Each(func(row []any) error {
		round, when := row[1].(int64), row[2].(int64)
		for i, x := range row {
			name := table.Columns[i].Name
			v, ok := x.(float64)
			switch {
			case !ok || i < len(places):
			case strings.HasPrefix(name, knobPrefix):
				if knobs[name] == nil {
					knobs[name] = &turning{}
				}
				knobs[name].turn(out, Tag(name), point{when, round, v})
			default:
				out.scalar(Tag(name), point{when, round, v})
			}
		}
		return out.err
	})
	for _, c := range table.Columns {
		if k := knobs[c.Name]; k != nil {
			k.rest(out, Tag(c.Name))
		}
	}
	if err != nil {
		return err
	}
	if members {
		err = r.points(func(when int64, p *event.Points) error {
			for i, x := range p.Values[:min(len(p.Members), len(p.Values))] {
				if m := p.Members[i]; m != view.Whole && !slices.Contains(named, p.Series) {
					out.scalar(memberTag(p.Series, m), point{when, int64(p.Round), x})
				}
			}
			return out.err
		})
	}
	if err != nil {
		return err
	}
	out.ended(r)
	return out.err
}

// Tag returns the TensorBoard tag of a column. The first word of a tag names a group of charts, the part after the
// slash a chart. The loss of the centre is in the group of losses.
func Tag(column string) string {
	series, suffix := column, ""
	for _, s := range []string{least, most} {
		if cut, ok := strings.CutSuffix(column, s); ok {
			series, suffix = cut, strings.Replace(s, ".", "/", 1)
		}
	}
	switch series {
	case view.CentreLoss:
		return "loss/centre"
	case view.TestError, view.TestBits, view.TestHamming, view.TestRMSE, view.TestR2, view.TestFitness, view.TestLoss,
		event.SeriesTrainError:
		return strings.ReplaceAll(series, ".", "_")
	case "loss":
		if suffix == "" {
			return "loss/median"
		}
	}
	return strings.ReplaceAll(series, ".", "/") + suffix
}

func memberTag(series string, m engine.Member) string {
	return strings.ReplaceAll(series, ".", "/") + "/member/" + strconv.FormatUint(uint64(m), 10)
}

// turning writes the scalars of a knob: only the first and the last round of each value, which a chart connects by a
// line.
type turning struct {
	last point
	some bool // last is set
	held bool // last is not written yet
}

// turn adds the value of the next round.
func (k *turning) turn(o *records, tag string, p point) {
	if k.some && p.x == k.last.x {
		k.last, k.held = p, true
		return
	}
	k.rest(o, tag)
	o.scalar(tag, p)
	k.last, k.some = p, true
}

// rest writes the last round if it is not written yet.
func (k *turning) rest(o *records, tag string) {
	if k.held {
		o.scalar(tag, k.last)
	}
	k.held = false
}

// records writes TFRecords: length, checksum of the length, message, checksum of the message. After an error it writes
// nothing.
type records struct {
	w   io.Writer
	buf []byte
	err error
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns the masked CRC-32C of TFRecords.
func masked(p []byte) uint32 {
	c := crc32.Checksum(p, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// event writes an event message. when is in Unix nanoseconds; more appends further fields.
func (o *records) event(when, round int64, more func([]byte) []byte) {
	if o.err != nil {
		return
	}
	b := append(o.buf[:0], make([]byte, 12)...)
	b = double(b, eventTime, float64(when)/1e9)
	b = protowire.AppendVarint(protowire.AppendTag(b, eventStep, protowire.VarintType), uint64(round))
	b = more(b)
	binary.LittleEndian.PutUint64(b, uint64(len(b)-12))
	binary.LittleEndian.PutUint32(b[8:], masked(b[:8]))
	b = binary.LittleEndian.AppendUint32(b, masked(b[12:]))
	o.buf = b
	_, o.err = o.w.Write(b)
}

func double(b []byte, field protowire.Number, x float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(x))
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func within(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

// point is a value of a round. when is the time of its record, in Unix nanoseconds.
type point struct {
	when, round int64
	x           float64
}

func (o *records) scalar(tag string, p point) {
	value := text(nil, valueTag, tag)
	value = protowire.AppendFixed32(protowire.AppendTag(value, valueSimple, protowire.Fixed32Type),
		math.Float32bits(float32(p.x)))
	o.event(p.when, p.round, func(b []byte) []byte { return within(b, eventSummary, within(nil, summaryValue, value)) })
}

// plugin writes a message of the hparams plugin, which its dashboard reads.
func (o *records) plugin(when int64, tag string, content []byte) {
	content = append(protowire.AppendVarint(protowire.AppendTag(nil, hparamsVersion, protowire.VarintType), 0), content...)
	plugin := within(text(nil, pluginName, "hparams"), pluginContent, content)
	value := within(text(nil, valueTag, tag), valueMetadata, within(nil, metadataPlugin, plugin))
	o.event(when, 0, func(b []byte) []byte { return within(b, eventSummary, within(nil, summaryValue, value)) })
}

// hparams writes the settings and knobs at the start of the run. The scalars show changes during training.
func (o *records) hparams(r *Run) {
	var start []byte
	for _, s := range r.Settings {
		value, _, _ := strings.Cut(s.Value, " → ")
		v := text(nil, textOfStruct, value)
		if x, err := strconv.ParseFloat(value, 64); err == nil && x-x == 0 {
			v = double(nil, numberOfStruct, x)
		}
		start = within(start, startHparams, within(text(nil, entryKey, s.Name), entryValue, v))
	}
	start = double(text(start, startGroup, r.Name), startTime, float64(r.begun)/1e9)
	o.plugin(r.begun, "_hparams_/session_start_info", within(nil, hparamsStart, start))
}

// ended writes the end of the run for the dashboard. It writes nothing if the run is not over.
func (o *records) ended(r *Run) {
	if !r.View.Over() {
		return
	}
	end := protowire.AppendVarint(protowire.AppendTag(nil, endStatus, protowire.VarintType), yes)
	o.plugin(r.ended, "_hparams_/session_end_info", within(nil, hparamsEnd, double(end, endTime, float64(r.ended)/1e9)))
}
