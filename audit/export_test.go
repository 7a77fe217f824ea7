package audit

import "encoding/json"

// EncodeFixed returns the bytes of an entry with a fixed salt.
func EncodeFixed(e Entry) ([]byte, error) {
	e.V = format
	e.Salt = "AAAAAAAAAAAAAAAAAAAAAA"
	return e.appendTo(nil)
}

// VerifyEach is like Verify for one folder, and calls f before it takes each entry.
func VerifyEach(dir string, f func()) (*Report, error) {
	r := newReport(1)
	s, err := new(Verifier).open(dir, r, &r.Logs[0])
	if err != nil {
		return nil, err
	}
	defer s.stop()
	next := s.next
	s.next = func() (scanned, bool) {
		f()
		return next()
	}
	newReplay(r).run([]*stream{s})
	return r, nil
}

// DecodeEntry decodes an entry twice: as the package does, and with package json alone.
func DecodeEntry(text []byte) (got, want Entry, gotErr, wantErr error) {
	got, gotErr = decodeEntry(text)
	wantErr = json.Unmarshal(text, &want)
	if wantErr == nil {
		wantErr = want.check(text)
	}
	return got, want, gotErr, wantErr
}
