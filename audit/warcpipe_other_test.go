//go:build !unix

package audit_test

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
