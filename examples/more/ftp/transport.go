package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/jlaffaye/ftp"
)

// The types of responses.
const (
	directoryListing = "text/html; charset=utf-8"
	plainFile        = "application/octet-stream"
)

// An ftpTransport is an http.RoundTripper for ftp URLs. A path that ends with a slash is a
// directory. Its response is an HTML page with links to its files. A file that does not exist has
// the status 404. Each request opens a connection.
type ftpTransport struct{}

// RoundTrip implements http.RoundTripper.
func (ftpTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	conn, err := login(req.Context(), req.URL)
	if err != nil {
		return nil, err
	}
	resp, err := get(conn, req)
	if err != nil {
		conn.Quit()
	}
	return resp, err
}

// login opens a connection to the server of u. Without a user in the URL, the user is anonymous.
func login(ctx context.Context, u *url.URL) (*ftp.ServerConn, error) {
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "21"))
	conn, err := ftp.Dial(address, ftp.DialWithContext(ctx), ftp.DialWithTimeout(30*time.Second))
	if err != nil {
		return nil, err
	}
	user, password := "anonymous", "anonymous"
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	err = conn.Login(user, password)
	if err != nil {
		conn.Quit()
		return nil, err
	}
	return conn, nil
}

// get returns the response to req. Its body closes conn.
func get(conn *ftp.ServerConn, req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/") {
		return list(conn, req)
	}
	file, err := conn.Retr(req.URL.Path)
	if isNotFound(err) {
		return respond(req, http.StatusNotFound, plainFile, &body{Reader: strings.NewReader(""), conn: conn}), nil
	}
	if err != nil {
		return nil, err
	}
	return respond(req, http.StatusOK, plainFile, &body{Reader: file, file: file, conn: conn}), nil
}

// list returns the listing of a directory.
func list(conn *ftp.ServerConn, req *http.Request) (*http.Response, error) {
	entries, err := conn.List(req.URL.Path)
	if err != nil {
		return nil, err
	}
	var page strings.Builder
	page.WriteString("<!DOCTYPE html>\n")
	for _, e := range entries {
		name := e.Name
		if e.Type == ftp.EntryTypeFolder {
			name += "/"
		}
		link := url.URL{Path: "./" + name}
		fmt.Fprintf(&page, "<a href=%q>%s</a>\n", link.String(), html.EscapeString(name))
	}
	return respond(req, http.StatusOK, directoryListing, &body{Reader: strings.NewReader(page.String()), conn: conn}), nil
}

// isNotFound reports whether the server says that it has no such file. RFC 959, section 4.2.2, has
// 550 for this. Some servers use another of the codes for permanent errors of the file system.
func isNotFound(err error) bool {
	var answer *textproto.Error
	return errors.As(err, &answer) && answer.Code/10 == 55
}

// respond returns a response.
func respond(req *http.Request, status int, contentType string, b *body) *http.Response {
	return &http.Response{
		Status:        fmt.Sprint(status, " ", http.StatusText(status)),
		StatusCode:    status,
		Proto:         "HTTP/1.0",
		ProtoMajor:    1,
		Header:        http.Header{"Content-Type": {contentType}},
		ContentLength: -1,
		Body:          b,
		Request:       req,
	}
}

// A body is the body of a response. Close also closes the connection to the server.
type body struct {
	io.Reader
	file *ftp.Response // nil if the body is no file
	conn *ftp.ServerConn
}

// Close implements io.Closer.
func (b *body) Close() error {
	var err error
	if b.file != nil {
		err = b.file.Close()
	}
	return errors.Join(err, b.conn.Quit())
}
