package policy

import (
	"context"
	"net/http/httptrace"
	"testing"
)

type testKey string

// TestWithValues checks that the context has the values of both contexts, except the trace of the
// second, and that it ends with the first.
func TestWithValues(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), testKey("both"), "first"))
	source := context.WithValue(context.Background(), testKey("both"), "second")
	source = context.WithValue(source, testKey("one"), "second")
	source = httptrace.WithClientTrace(source, &httptrace.ClientTrace{})
	merged := WithValues(ctx, source)
	for key, want := range map[testKey]any{"both": "first", "one": "second", "none": nil} {
		if got := merged.Value(key); got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	if httptrace.ContextClientTrace(merged) != nil {
		t.Error("the context has the trace of the second context")
	}
	cancel()
	if merged.Err() == nil {
		t.Error("the context did not end with the first context")
	}
}
