package scale

import "time"

// An event is a function that is called with a visit at a time.
type event struct {
	at   time.Duration
	what func(*crawl, *visit)
	v    *visit
}

// events are the future events, as a heap with the next event first.
type events []event

func (e *events) push(new event) {
	*e = append(*e, new)
	h := *e
	i := len(h) - 1
	for i > 0 && h[i].at < h[(i-1)/2].at {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
}

// pop removes the next event and returns it.
func (e *events) pop() event {
	h := *e
	next := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h[last] = event{}
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && h[child+1].at < h[child].at {
			child++
		}
		if h[i].at <= h[child].at {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	*e = h
	return next
}

// A line is a queue of visits.
type line struct {
	visits []*visit
	front  int
}

func (l *line) push(v *visit) { l.visits = append(l.visits, v) }

// pop removes the first visit and returns it, or returns nil if there is none.
func (l *line) pop() *visit {
	if l.front == len(l.visits) {
		return nil
	}
	v := l.visits[l.front]
	l.visits[l.front] = nil
	l.front++
	if l.front == len(l.visits) {
		l.visits = l.visits[:0]
		l.front = 0
	}
	return v
}
