package cli

import (
	"fmt"
	"net"

	"github.com/collyrobots/collyrobots/audit"
)

// Listen listens on an address. If the address has no host, it listens on the loopback interface.
func Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w; use an address such as 127.0.0.1:8090", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// OpenLog opens the audit log of the flag -audit. If the log cannot be written later, the channel gets the
// first error.
func OpenLog(dir string) (log *audit.Log, failed <-chan error, err error) {
	faults := make(chan error, 1)
	log, err = audit.Open(dir, audit.OnError(func(err error) {
		select {
		case faults <- fmt.Errorf("-audit: %w", err):
		default:
		}
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("-audit: %w", err)
	}
	return log, faults, nil
}
