package session

import "encoding/binary"

// queued is an encoded record in the queue.
type queued struct {
	data      []byte
	kind      int
	essential bool
}

// queue holds the appended records that are not yet written, in order.
type queue struct {
	records []queued
	bytes   int
}

func (q *queue) push(r queued) {
	q.records = append(q.records, r)
	q.bytes += len(r.data)
}

// pop removes the first n records after they are written.
func (q *queue) pop(n int) {
	for _, r := range q.records[:n] {
		q.bytes -= len(r.data)
	}
	clear(q.records[:n])
	q.records = q.records[n:]
	if len(q.records) == 0 {
		q.records = nil
	}
}

// keepEssential removes the records that are not essential and returns their number.
func (q *queue) keepEssential() (dropped uint64) {
	kept := queue{}
	for _, r := range q.records {
		if r.essential {
			kept.push(r)
		}
	}
	dropped = uint64(len(q.records) - len(kept.records))
	*q = kept
	return dropped
}

// fill appends the records of one frame, from index from on, to plain. It returns the uncompressed payload and a header
// with count and kinds.
func (q *queue) fill(from int, plain []byte) ([]byte, header) {
	var h header
	for _, r := range q.records[from:] {
		if h.count == frameRecords || len(plain) >= framePlain {
			break
		}
		plain = binary.LittleEndian.AppendUint32(plain, uint32(len(r.data)))
		plain = append(plain, r.data...)
		h.count++
		h.kinds |= 1 << r.kind
	}
	return plain, h
}
