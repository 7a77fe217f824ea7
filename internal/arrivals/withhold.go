package arrivals

// A withheld is a URL that the collector must not mark as visited before the caller has decided
// whether it may be requested.
type withheld struct {
	held    int  // how often Withhold was called for it, and release was not
	pending int  // visits that the collector has accepted, and Decide was not called for
	marked  bool // one of them may be requested
}

// Withhold is for URLs with links that may be followed on some pages only. The collector marks a
// URL as visited before it is known which page links to it. For these hashes, the Storage does not
// pass the mark on until Decide is called for the visit. The caller calls release when it expects
// no more such visits.
func (s *Storage) Withhold(hashes []uint64) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range hashes {
		w := s.withheld[hash]
		if w == nil {
			w = new(withheld)
			s.withheld[hash] = w
		}
		w.held++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, hash := range hashes {
			w := s.withheld[hash]
			w.held--
			s.drop(hash, w)
		}
	}
}

// drop forgets a URL that is not withheld any more and has no undecided visit. s.mu is held.
func (s *Storage) drop(hash uint64, w *withheld) {
	if w.held == 0 && w.pending == 0 {
		delete(s.withheld, hash)
	}
}

// withholds reports whether the mark of a visit is not passed on.
func (s *Storage) withholds(hash uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.withheld[hash]
	if w == nil {
		return false
	}
	w.pending++
	return true
}

// Withholds reports whether there are hashes of Withhold that Decide may be called for.
func (s *Storage) Withholds() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.withheld) > 0
}

// Decide records whether a visit may be requested. If allowed is false, the collector will accept
// the URL again. If allowed is true, the URL is marked as visited. Decide then reports whether
// another visit with this hash was allowed before, so that this one must not be requested.
func (s *Storage) Decide(hash uint64, allowed bool) (duplicate bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.withheld[hash]
	if w == nil || w.pending == 0 { // the URL is marked already, or the request is a retry
		if !allowed && s.exempt[hash] == 0 {
			s.addExempt(hash, 1)
		}
		return false, nil
	}
	w.pending--
	defer s.drop(hash, w)
	if !allowed || w.marked {
		return allowed, nil
	}
	w.marked = true
	return false, s.Storage.Visited(hash)
}
