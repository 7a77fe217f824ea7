package kit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// A Lookup finds the addresses of a name. An error means that the name does not exist.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// Resolve makes net.DefaultResolver use lookup until the end of the test. Call it outside of
// bubbles, because package net keeps a channel from its first look-up.
func Resolve(t *testing.T, lookup Lookup) {
	t.Helper()
	unknown := newResolver(func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") })
	unknown.LookupNetIP(t.Context(), "ip", "a.test")
	before := net.DefaultResolver
	net.DefaultResolver = newResolver(lookup)
	t.Cleanup(func() { net.DefaultResolver = before })
}

func newResolver(lookup Lookup) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return &nameServer{ctx: ctx, lookup: lookup}, nil
	}}
}

// A nameServer is a connection to a name server over TCP, with one query at a time.
type nameServer struct {
	ctx    context.Context
	lookup Lookup
	answer bytes.Buffer
}

// Write takes a query, which is preceded by its length, and prepares the answer. It blocks while
// lookup does.
func (s *nameServer) Write(query []byte) (int, error) {
	var m dnsmessage.Message
	err := m.Unpack(query[2:])
	if err != nil {
		return 0, err
	}
	m.Response = true
	m.RecursionAvailable = true
	found, err := s.lookup(s.ctx, strings.TrimSuffix(m.Questions[0].Name.String(), "."))
	if err != nil {
		m.RCode = dnsmessage.RCodeNameError
	}
	m.Additionals = nil
	m.Answers = answers(m.Questions[0], found)
	packed, err := m.Pack()
	if err != nil {
		return 0, err
	}
	s.answer.Write(binary.BigEndian.AppendUint16(nil, uint16(len(packed))))
	s.answer.Write(packed)
	return len(query), nil
}

// answers returns the records of a question's type with the addresses.
func answers(q dnsmessage.Question, found []netip.Addr) (records []dnsmessage.Resource) {
	for _, addr := range found {
		var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		kind := dnsmessage.TypeAAAA
		if addr.Is4() {
			body = &dnsmessage.AResource{A: addr.As4()}
			kind = dnsmessage.TypeA
		}
		if kind == q.Type {
			header := dnsmessage.ResourceHeader{Name: q.Name, Type: kind, Class: q.Class, TTL: 60}
			records = append(records, dnsmessage.Resource{Header: header, Body: body})
		}
	}
	return records
}

func (s *nameServer) Read(p []byte) (int, error)       { return s.answer.Read(p) }
func (s *nameServer) Close() error                     { return nil }
func (s *nameServer) LocalAddr() net.Addr              { return nil }
func (s *nameServer) RemoteAddr() net.Addr             { return nil }
func (s *nameServer) SetDeadline(time.Time) error      { return nil }
func (s *nameServer) SetReadDeadline(time.Time) error  { return nil }
func (s *nameServer) SetWriteDeadline(time.Time) error { return nil }
