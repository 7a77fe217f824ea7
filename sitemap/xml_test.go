package sitemap

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"
)

// BenchmarkXML compares the Reader with xml.Decoder.Token, which does less: it only finds the tags
// and the text between them. Only compare results of the same run.
func BenchmarkXML(b *testing.B) {
	const size = 2_000_000
	for _, d := range []struct {
		name string
		doc  []byte
	}{
		{"plain", document(b, urlsetHead, plainEntry, urlsetTail, size)},
		{"minified", document(b, urlsetHead, denseEntry, urlsetTail, size)}, // 84 bytes per entry
	} {
		b.Run(d.name+"/Reader", func(b *testing.B) { benchReader(b, d.doc, int64(len(d.doc)), false) })
		b.Run(d.name+"/encoding_xml", func(b *testing.B) {
			b.SetBytes(int64(len(d.doc)))
			b.ReportAllocs()
			for b.Loop() {
				readTokens(b, d.doc)
			}
		})
	}
}

func readTokens(b *testing.B, doc []byte) {
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}
