package message

// Order is what the core of a run says to a worker. The set is closed: whoever takes orders apart knows all of them.
type Order interface{ order() }

func (Grant) order() {}
func (Abort) order() {}
func (Plan) order()  {}
func (Save) order()  {}
func (Stop) order()  {}
func (Away) order()  {}

// Report is what a worker says to the core, with the number that the worker gives itself. The set is closed.
type Report interface {
	Sender() int
	report()
}

func (Ready) report()   {}
func (Done) report()    {}
func (Failed) report()  {}
func (Saved) report()   {}
func (Leaving) report() {}

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
