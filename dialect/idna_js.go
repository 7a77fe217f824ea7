package dialect

import (
	"errors"
	"strings"
	"syscall/js"
)

// toASCII returns a host name in lower-case punycode. JavaScript's URL also converts names, so
// programs for it do not contain the tables of package idna, which have 300 KB.
func toASCII(name string) (ascii string, err error) {
	// In a URL, such a character ends the host or is removed from it.
	forbidden := func(c rune) bool { return c < 0x7f && isForbiddenInHost(c) }
	if strings.ContainsFunc(name, forbidden) {
		return "", errors.New("invalid host name")
	}
	defer func() {
		thrown := recover()
		if thrown != nil {
			err = thrown.(js.Error)
		}
	}()
	return js.Global().Get("URL").New("http://" + name).Get("hostname").String(), nil
}
