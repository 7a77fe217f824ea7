package policy

import (
	"context"
	"net/http/httptrace"
)

// WithValues returns a context that ends with ctx and also has the values of source. It does not
// have the httptrace.ClientTrace of source, which is for the requests of that context alone.
func WithValues(ctx, source context.Context) context.Context {
	return valuesContext{Context: ctx, source: source}
}

type valuesContext struct {
	context.Context
	source context.Context
}

// Value implements context.Context.
func (c valuesContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	v := c.source.Value(key)
	if _, ok := v.(*httptrace.ClientTrace); ok {
		return nil
	}
	return v
}
