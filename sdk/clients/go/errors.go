// Package quiver is a client of Quiver over HTTP: tasks that run in the order of their key, each once, none lost.
package quiver

// Refused: nothing was stored, and the same call will be refused again.
type Refused struct {
	Text   string
	Status int
	ID     string // of the task that is there already (409)
}

func (e *Refused) Error() string { return e.Text }

// Retry: nothing was stored; the same call may succeed later.
type Retry struct{ Text string }

func (e *Retry) Error() string { return e.Text }

// Unknown: whether it was stored is not known.  Only a call with an idempotency key may be repeated without a second task.
type Unknown struct{ Text string }

func (e *Unknown) Error() string { return e.Text }
