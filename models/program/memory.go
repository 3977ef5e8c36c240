package program

import (
	"fmt"
	"os"
	"slices"

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
	m.buf = engine.AppendFloats(m.buf[:0], row)
	return m.writeBuf(at)
}

// writeWords is write for a row of bits.
func (m *memory) writeWords(row []uint64, at int64) error {
	m.buf = engine.AppendWords(m.buf[:0], row)
	return m.writeBuf(at)
}

func (m *memory) writeBuf(at int64) error {
	if len(m.buf) == 0 {
		return nil
	}
	if _, err := m.file.WriteAt(m.buf, at); err != nil {
		return fmt.Errorf("write to the memory shared with the program: %w", err)
	}
	return nil
}

// read reads a row from a byte offset.
func (m *memory) read(row []float32, at int64) error {
	if err := m.readBuf(4*len(row), at); err != nil {
		return err
	}
	engine.ReadFloats(row, m.buf)
	return nil
}

// readWords is read for a row of bits.
func (m *memory) readWords(row []uint64, at int64) error {
	if err := m.readBuf(8*len(row), at); err != nil {
		return err
	}
	engine.ReadWords(row, m.buf)
	return nil
}

func (m *memory) readBuf(size int, at int64) error {
	m.buf = slices.Grow(m.buf[:0], size)[:size]
	if size == 0 {
		return nil
	}
	if _, err := m.file.ReadAt(m.buf, at); err != nil {
		// not wrapped: the end of this file is not the end of the program's output
		return fmt.Errorf("read from the memory shared with the program, which it has shortened: %v", err)
	}
	return nil
}
