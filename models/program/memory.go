package program

import (
	"fmt"
	"os"

	"brood/models/engine"
)

// memory is a file through which rows go to and come from a program, which maps it. This process does not map it, so
// that a program that truncates it cannot crash this process.
type memory struct {
	file *os.File
	at   offsets
	buf  []byte
}

// write writes a row at a byte offset.
func (m *memory) write(row []float32, at int64) error {
	if len(row) == 0 {
		return nil
	}
	m.buf = engine.AppendFloats(m.buf[:0], row)
	if _, err := m.file.WriteAt(m.buf, at); err != nil {
		return fmt.Errorf("write to the memory shared with the program: %w", err)
	}
	return nil
}

// read reads a row from a byte offset.
func (m *memory) read(row []float32, at int64) error {
	if len(row) == 0 {
		return nil
	}
	if cap(m.buf) < 4*len(row) {
		m.buf = make([]byte, 4*len(row))
	}
	m.buf = m.buf[:4*len(row)]
	if _, err := m.file.ReadAt(m.buf, at); err != nil {
		// not wrapped: the end of this file is not the end of the program's output
		return fmt.Errorf("read from the memory shared with the program, which it has shortened: %v", err)
	}
	engine.ReadFloats(row, m.buf)
	return nil
}
