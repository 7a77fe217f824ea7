// Package typednil finds nil pointers in interfaces. A function with a result of the type *net.OpError,
// whose nil result becomes an error, returns an error that is not nil, and whose methods panic.
package typednil

import (
	"fmt"
	"reflect"
)

// Is reports whether v is nil, or has a pointer, a function or a map that is nil.
func Is(v any) bool {
	if v == nil {
		return true
	}
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map:
		return x.IsNil()
	}
	return false
}

// Error returns err, unless it has or wraps an error that is a nil pointer. It then returns an error
// without details, whose methods do not panic.
func Error(err error) error {
	if inner := find(err); inner != nil {
		return fmt.Errorf("%v (a nil %T)", err, inner)
	}
	return err
}

// find returns the error among err and the errors that it wraps that is a nil pointer, or nil.
func find(err error) error {
	if err == nil {
		return nil
	}
	if Is(err) {
		return err
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return find(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			if inner := find(wrapped); inner != nil {
				return inner
			}
		}
	}
	return nil
}
