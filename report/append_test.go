package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/seconds"
)

// TestAppendLikeJSON compares the bytes of events with those that package json writes. The events
// have random values in each exported field of Event and Decision, so a new field that AppendJSON
// does not know makes the test fail.
func TestAppendLikeJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		e := new(Event)
		fill(random, reflect.ValueOf(e).Elem())
		if random.IntN(3) > 0 {
			e.Decision = new(Decision)
			fill(random, reflect.ValueOf(e.Decision).Elem())
		}
		sameAsJSON(t, e)
	}
}

// TestAppendTexts compares the bytes of texts that need escapes, and of some that do not.
func TestAppendTexts(t *testing.T) {
	for _, text := range []string{"", "a b", `"`, `\`, `\u0041`, "\x00\n\x1f\x7f", "<&>", "é", "\u2028\u2029", "\ufffd", "\xff\xfe", "a\xffb", `\ufffd`, "\xf0\x9f\x98"} {
		sameAsJSON(t, &Event{URL: text, Err: errors.New(text)})
	}
}

// TestAppendFaults checks that a time that JSON cannot hold is an error.
func TestAppendFaults(t *testing.T) {
	e := &Event{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	_, err := e.AppendJSON(nil)
	if err == nil {
		t.Error("there is no error for the year 10000")
	}
}

// sameAsJSON checks that AppendJSON writes what package json writes, and that it can be read back.
func sameAsJSON(t *testing.T, e *Event) {
	t.Helper()
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(wireOf(e)); err != nil {
		t.Fatal(err)
	}
	got, err := e.AppendJSON(nil)
	if text := unescape(bytes.TrimSpace(want.Bytes())); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("%v\n%s\nwant\n%s", err, got, text)
	}
	var back Event
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	again, err := back.AppendJSON(nil)
	if err != nil || !bytes.Equal(again, got) {
		t.Fatalf("read back: %v\n%s\nwant\n%s", err, again, got)
	}
}

// fill sets about half of the fields of a struct to random values.
func fill(random *rand.Rand, v reflect.Value) {
	for i := range v.NumField() {
		if random.IntN(2) == 0 {
			v.Field(i).Set(anyOf(random, v.Field(i).Type()))
		}
	}
}

// anyOf returns a random value of a type.
func anyOf(random *rand.Rand, kind reflect.Type) reflect.Value {
	v := reflect.New(kind).Elem()
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(random.Int64N(1<<33), random.Int64N(1e9)).In(time.FixedZone("", 60*(random.IntN(1000)-500)))
		return v
	case *error:
		*p = errors.New(textFor(random))
		return v
	case *dialect.Dialect:
		*p = dialect.All()[random.IntN(len(dialect.All()))]
		return v
	case **Decision, *[]byte, *context.Context:
		return v
	}
	switch kind.Kind() {
	case reflect.String:
		v.SetString(textFor(random))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(random.Int64() - 1<<62)
	case reflect.Uint8:
		v.SetUint(uint64(random.IntN(3)))
	case reflect.Uint32:
		v.SetUint(uint64(random.Uint32()))
	case reflect.Uint64:
		v.SetUint(random.Uint64())
	case reflect.Slice:
		v.Set(reflect.Append(v, anyOf(random, kind.Elem())))
	case reflect.Pointer:
		v.Set(reflect.New(kind.Elem()))
		fill(random, v.Elem())
	case reflect.Struct:
		fill(random, v)
	default:
		panic(kind.String())
	}
	return v
}

func textFor(random *rand.Rand) string {
	words := []string{"http://shop.test/a?b=c", "bot", "\"", "\\", "\n", "ä", "\xff", "<", "\u2028"}
	n := 1 + random.IntN(3)
	var b strings.Builder
	for range n {
		b.WriteString(words[min(random.IntN(20), len(words)-1)*random.IntN(2)])
	}
	return b.String()
}

// wireOf returns e as package json encodes it in one pass.
func wireOf(e *Event) *eventJSON {
	w := &eventJSON{
		plainEvent: (*plainEvent)(e),
		Gap:        seconds.Duration(e.Gap),
		Delay:      seconds.Duration(e.Delay),
		Took:       seconds.Duration(e.Took),
		Waited:     seconds.Duration(e.Waited),
		RobotsWait: seconds.Duration(e.RobotsWait),
		Connect:    seconds.Duration(e.Connect),
		Error:      textOf(e.Err),
	}
	if d := e.Decision; d != nil {
		w.Decision = &decisionJSON{
			plainDecision: plainDecision(*d),
			CrawlDelay:    seconds.Duration(d.CrawlDelay),
			Delay:         seconds.Duration(d.Delay),
			BackOff:       seconds.Duration(d.BackOff),
			Error:         textOf(d.Err),
		}
	}
	return w
}
