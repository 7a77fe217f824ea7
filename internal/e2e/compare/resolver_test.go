package compare

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// resolve replaces net.DefaultResolver during a test by one that asks a server in memory. The names
// below shop.test have one address, and other names have addresses of their own.
func resolve(t *testing.T, seed uint64) {
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go answerNames(far, seed)
		return near, nil
	}}
}

// readResolverConfig lets package net read the settings of the system outside of a bubble, because
// it keeps a channel with them.
func readResolverConfig() {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }}
	r.LookupHost(context.Background(), "h0.test")
}

// answerNames answers the queries of a connection.
func answerNames(conn net.Conn, seed uint64) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := answerName(query, seed)
		if err != nil {
			return
		}
		reply = append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
		if _, err := conn.Write(reply); err != nil {
			return
		}
	}
}

// answerName returns the answer to a query.
func answerName(query []byte, seed uint64) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil, io.ErrUnexpectedEOF
	}
	m.Response = true
	m.RecursionAvailable = true
	m.Additionals = nil
	q := m.Questions[0]
	address := [4]byte{93, 184, 1, byte(hashOf(q.Name.String()))}
	switch q.Name.String() {
	case "a.shop.test.", "b.shop.test.", "h0.test.":
		address[3] = 7
	}
	if chance(6, seed, q.Name.String()) {
		m.RCode = dnsmessage.RCodeNameError
		return m.Pack()
	}
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: address},
		}}
	}
	return m.Pack()
}
