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

// A sarifLog is a log of the Static Analysis Results Interchange Format (OASIS, SARIF 2.1.0).
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name  string      `json:"name"`
	URI   string      `json:"informationUri"`
	Rules []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID      string      `json:"id"`
	Short   sarifText   `json:"shortDescription"`
	Default sarifConfig `json:"defaultConfiguration"`
	HelpURI string      `json:"helpUri"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifConfig struct {
	Level lint.Severity `json:"level"` // the names of the severities are those of SARIF
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     lint.Severity   `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

const lintPage = "https://github.com/collyrobots/collyrobots/blob/main/docs/lint.md"

// sarifOf returns the log of the findings. It lists all rules, so that a finding may refer to its
// rule by an index.
func sarifOf(reports []listing) sarifLog {
	driver := sarifDriver{Name: "collyrobots lint", URI: lintPage}
	index := make(map[string]int)
	for i, k := range lint.Kinds() {
		index[k.ID] = i
		driver.Rules = append(driver.Rules, sarifRule{ID: k.ID, Short: sarifText{k.Meaning}, Default: sarifConfig{k.Severity}, HelpURI: lintPage})
	}
	results := []sarifResult{}
	for _, r := range reports {
		for _, f := range r.findings {
			place := sarifPhysical{Artifact: sarifArtifact{URI: sarifURI(r.name)}}
			if f.Line > 0 {
				place.Region = &sarifRegion{StartLine: f.Line}
			}
			results = append(results, sarifResult{
				RuleID:    f.ID,
				RuleIndex: index[f.ID],
				Level:     f.Severity,
				Message:   sarifText{f.Text},
				Locations: []sarifLocation{{place}},
			})
		}
	}
	return sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{{Tool: sarifTool{driver}, Results: results}},
	}
}

// sarifURI returns the URI of a file, which is relative unless the file has a URL.
func sarifURI(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath()
}
