//go:build !unix

package audit_test

import "errors"

const canLimitFiles = false

func limitFiles(uint64) error { return errors.ErrUnsupported }
