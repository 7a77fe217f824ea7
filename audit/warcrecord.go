package audit

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// A warcRecord is one record of a WARC 1.1 file (ISO 28500:2017, clause 4).
type warcRecord struct {
	kind        string // WARC-Type
	id          string // WARC-Record-ID, from warcID
	date        time.Time
	uri         string // WARC-Target-URI, from warcURI or hashURI; "" if there is none
	fields      []warcField
	payload     string // the SHA-256 of the payload in hexadecimal digits; "" if there is none
	contentType string // "" if the block is empty
	block       []byte
}

// A warcField is a named field in the header of a record. It is not written if value is "". No
// value has control characters.
type warcField struct{ name, value string }

// write writes the record.
func (r *warcRecord) write(out *bufio.Writer) error {
	fields := []warcField{
		{"WARC-Type", r.kind},
		{"WARC-Record-ID", r.id},
		{"WARC-Date", warcDate(r.date)},
		{"WARC-Target-URI", r.uri},
	}
	fields = append(fields, r.fields...)
	sum := sha256.Sum256(r.block)
	fields = append(fields, warcField{"WARC-Block-Digest", "sha256:" + hex.EncodeToString(sum[:])})
	if r.payload != "" {
		fields = append(fields, warcField{"WARC-Payload-Digest", "sha256:" + r.payload})
	}
	fields = append(fields, warcField{"Content-Type", r.contentType}, warcField{"Content-Length", fmt.Sprint(len(r.block))})
	out.WriteString("WARC/1.1\r\n")
	for _, f := range fields {
		if f.value != "" {
			fmt.Fprintf(out, "%s: %s\r\n", f.name, f.value)
		}
	}
	out.WriteString("\r\n")
	out.Write(r.block)
	_, err := out.WriteString("\r\n\r\n") // also returns the error of an earlier call
	return err
}

// warcID returns the identifier of a record about an entry: a UUID of version 8 (RFC 9562), derived
// from the hash.
func warcID(kind string, index uint64, hash tlog.Hash) string {
	u := sha256.Sum256(fmt.Appendf(nil, "%s %d %x", kind, index, hash))
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("<urn:uuid:%x-%x-%x-%x-%x>", u[:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// warcDate returns a time in the format of WARC-Date. A forged time whose year has no four digits
// becomes the zero time.
func warcDate(t time.Time) string {
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		t = time.Time{}
	}
	return t.Format(time.RFC3339Nano)
}

// hashURI returns a URI that names a file by its SHA-256 in hexadecimal digits (RFC 6920).
func hashURI(digits string) string {
	sum, _ := hex.DecodeString(digits) // readBody has checked the digits
	return "ni:///sha-256;" + base64.RawURLEncoding.EncodeToString(sum)
}

// warcURI returns text as a URI of RFC 3986: characters that a URI must not have are escaped. It
// returns "" if text is no absolute URL with a host.
func warcURI(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	path, fragment, hasFragment := strings.Cut(rest[end:], "#")
	var b strings.Builder
	b.WriteString(scheme + "://")
	if at > 0 {
		b.WriteString(escapeURI(rest[:at-1], ":") + "@")
	}
	b.WriteString(escapeURI(rest[at:end], "[]:") + escapeURI(path, "/?:@"))
	if hasFragment {
		b.WriteString("#" + escapeURI(fragment, "/?:@"))
	}
	u, err := url.Parse(b.String())
	if err != nil || u.Scheme == "" || u.Host == "" || !isHost(u) {
		return ""
	}
	return b.String()
}

// isHost reports whether the host of u is a name or an address in the form of RFC 3986.
func isHost(u *url.URL) bool {
	if !strings.ContainsAny(u.Hostname()+u.Host[:1], "[]:") {
		return true
	}
	address, err := netip.ParseAddr(u.Hostname())
	return err == nil && address.Is6() && u.Host[0] == '['
}

// escapeURI escapes all bytes of text except those that RFC 3986 allows in every component, those in
// allowed, and escapes.
func escapeURI(text, allowed string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			b.WriteByte(c)
		case strings.IndexByte("-._~!$&'()*+,;=", c) >= 0, strings.IndexByte(allowed, c) >= 0:
			b.WriteByte(c)
		case c == '%' && isEscape(text[i:]):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// isEscape reports whether text begins with an escape such as %2F.
func isEscape(text string) bool {
	if len(text) < 3 {
		return false
	}
	_, err := hex.DecodeString(text[1:3])
	return err == nil
}
