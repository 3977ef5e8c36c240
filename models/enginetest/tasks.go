package enginetest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

// outputs are the fields of tasks that an engine writes to host memory.
var outputs = map[string]bool{"Loss": true, "Correct": true, "Squares": true, "Fitness": true, "RMS": true, "OK": true,
	"Hash": true, "Moved": true}

// mapMatrices returns a copy of a task with every matrix replaced and new memory for every input slice. Output slices
// are shared.
func mapMatrices(t engine.Task, mat func(engine.Mat) engine.Mat) engine.Task {
	v := reflect.New(reflect.TypeOf(t)).Elem()
	v.Set(reflect.ValueOf(t))
	remake(v, mat)
	return v.Interface().(engine.Task)
}

var matType = reflect.TypeFor[engine.Mat]()

func remake(v reflect.Value, mat func(engine.Mat) engine.Mat) {
	switch {
	case v.Type() == matType:
		v.Set(reflect.ValueOf(mat(v.Interface().(engine.Mat))))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !outputs[v.Type().Field(i).Name] {
				remake(v.Field(i), mat)
			}
		}
	case v.Kind() == reflect.Slice && !v.IsNil():
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		for i := range c.Len() {
			remake(c.Index(i), mat)
		}
		v.Set(c)
	}
}

// try runs tasks on matrices of package ram on an engine with separate memory: it writes their contents there, and
// reads them back. A matrix without memory stays one.
func try(ctx context.Context, e engine.Engine, tasks ...engine.Task) (err error) {
	there := map[engine.Buffer]engine.Mat{}
	defer func() {
		for b, m := range there {
			p := make([]byte, m.Bytes())
			if fault := e.Read(context.Background(), p, engine.All(m)); fault != nil && err == nil {
				err = fault
			}
			engine.ReadFloats(ram.View(engine.Over(b, 0, 1, b.Len())).F, p)
			e.Free(m)
		}
	}()
	var broken error
	var moved []engine.Task
	for _, t := range tasks {
		moved = append(moved, mapMatrices(t, func(m engine.Mat) engine.Mat {
			b, at := m.Behind()
			if b == nil {
				return m
			}
			own, ok := there[b]
			if !ok {
				var err error
				if own, err = e.Alloc(1, b.Len()); err == nil {
					there[b] = own
					err = e.Write(context.Background(), engine.All(own),
						engine.AppendFloats(nil, ram.View(engine.Over(b, 0, 1, b.Len())).F))
				}
				if err != nil {
					broken = err
					return m
				}
			}
			to, first := own.Behind()
			return engine.Over(to, first+at, m.Rows, m.Cols)
		}))
	}
	if broken != nil {
		return broken
	}
	if err := e.Do(ctx, moved...); err != nil {
		return &refusedError{err}
	}
	for _, t := range moved { // the caller may overwrite inputs now
		spoil(reflect.ValueOf(t))
	}
	return e.Wait(ctx)
}

// refusedError is an error of Do itself.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// refuses fails unless the task is refused at once: a later error would be attributed to another task. An Elsewhere may
// be late, since only the wrapped engine detects the error.
func refuses(t *testing.T, e engine.Engine, name string, task engine.Task) {
	t.Helper()
	err := try(context.Background(), e, task)
	if err == nil || err.Error() == "" {
		t.Errorf("%s: no error", name)
	}
	_, late := e.(*Elsewhere)
	if _, atOnce := errors.AsType[*refusedError](err); err != nil && !atOnce && !late {
		t.Errorf("%s: refused late: %v", name, err)
	}
}

// spoil overwrites the input slices of a task, including nested ones, but not the outputs.
func spoil(v reflect.Value) {
	switch {
	case v.Type() == matType:
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !outputs[v.Type().Field(i).Name] {
				spoil(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
			v.Index(i).SetZero()
		}
	}
}

func do(t *testing.T, e engine.Engine, tasks ...engine.Task) {
	t.Helper()
	if err := try(context.Background(), e, tasks...); err != nil {
		t.Fatal(err)
	}
}

// row returns row r of a matrix of package ram, flat all its elements.
func row(m engine.Mat, r engine.Row) []float32 { return ram.View(m).Row(r) }
func flat(m engine.Mat) []float32              { return ram.View(m).F }

func clone(m engine.Mat) engine.Mat { return ram.Of(ram.View(m).Clone()) }
