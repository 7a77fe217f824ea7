package main

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/lint"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// annotate writes the findings as workflow commands of GitHub Actions (docs.github.com, "Workflow
// commands for GitHub Actions").
func annotate(w io.Writer, r listing) {
	names := map[lint.Severity]string{lint.Error: "error", lint.Warning: "warning", lint.Note: "notice"}
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range r.findings {
		fmt.Fprintf(w, "::%s file=%s,line=%d,title=%s::%s\n", names[f.Severity],
			property.Replace(term.Safe(r.name)), max(f.Line, 1), property.Replace(f.ID), message.Replace(term.Safe(f.Text)))
	}
}

const lintPage = "https://github.com/collyrobots/collyrobots/blob/main/docs/reference/findings.md"

// An object is an object of JSON.
type object map[string]any

// sarifOf returns the findings as a log of the Static Analysis Results Interchange Format (OASIS, SARIF
// 2.1.0). It lists all rules, so that a finding may refer to its rule by an index.
func sarifOf(reports []listing) object {
	var rules []object
	index := make(map[string]int)
	for i, k := range lint.Kinds() {
		index[k.ID] = i
		rules = append(rules, object{
			"id":                   k.ID,
			"shortDescription":     object{"text": k.Meaning},
			"defaultConfiguration": object{"level": k.Severity}, // the names of the severities are those of SARIF
			"helpUri":              lintPage,
		})
	}
	results := []object{}
	for _, r := range reports {
		for _, f := range r.findings {
			place := object{"artifactLocation": object{"uri": sarifURI(r.name)}}
			if f.Line > 0 {
				place["region"] = object{"startLine": f.Line}
			}
			results = append(results, object{
				"ruleId":    f.ID,
				"ruleIndex": index[f.ID],
				"level":     f.Severity,
				"message":   object{"text": f.Text},
				"locations": []object{{"physicalLocation": place}},
			})
		}
	}
	driver := object{"name": "collyrobots lint", "informationUri": lintPage, "rules": rules}
	return object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs":    []object{{"tool": object{"driver": driver}, "results": results}},
	}
}

// sarifURI returns the URI of a file, which is relative unless the file has a URL.
func sarifURI(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath()
}
