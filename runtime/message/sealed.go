package message

// Order is a message from the coordinator to a worker. The set of implementations is closed.
type Order interface{ order() }

func (Grant) order() {}
func (Abort) order() {}
func (Plan) order()  {}
func (Save) order()  {}
func (Stop) order()  {}
func (Evict) order() {}
func (Audit) order() {}

// Report is a message from a worker to the coordinator. Sender returns the id that the worker states. The set of
// implementations is closed.
type Report interface {
	Sender() int
	report()
}

func (Ready) report()   {}
func (Done) report()    {}
func (Failed) report()  {}
func (Saved) report()   {}
func (Leaving) report() {}
func (Audited) report() {}

// Sender implements [Report].
func (m Ready) Sender() int { return m.Worker }

// Sender implements [Report].
func (m Done) Sender() int { return m.Worker }

// Sender implements [Report].
func (m Failed) Sender() int { return m.Worker }

// Sender implements [Report].
func (m Saved) Sender() int { return m.Worker }

// Sender implements [Report].
func (m Leaving) Sender() int { return m.Worker }

// Sender implements [Report].
func (m Audited) Sender() int { return m.Worker }
