package audit

// EncodeFixed returns the bytes of an entry with a fixed salt.
func EncodeFixed(e Entry) ([]byte, error) {
	e.V = format
	e.Salt = "AAAAAAAAAAAAAAAAAAAAAA"
	return e.appendTo(nil)
}
