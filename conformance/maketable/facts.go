package main

import (
	"fmt"
	"strings"
)

// released has the month, or at least the year, in which a version was published. The packages of
// npm that are not listed do not say it.
var released = map[string]string{
	"temoto 1.1.2":               "2021-03",
	"grobotstxt 1.0.3":           "2022-03",
	"benjaminestes 2.0.4":        "2018-12",
	"samclarke 20171127":         "2017-11",
	"Python 3.11.7":              "2023-12",
	"Python (Pyodide) 3.15.0rc1": "2026",
	"Protego 0.2.1":              "2022-02",
	"robots (npm) 0.10.1":        "2017-07",
	"WWW::RobotRules 6.02":       "2012-02",
	"Colly 2.3.0":                "2025-12",
	"Scrapy 2.8.0":               "2023-02",
	"LWP::RobotUA 6.68":          "2023-02",
	"Wget 1.21.3":                "2022-02",
	"Wget2 1.99.1":               "2018-05",
}

// notRun has parsers and crawlers that the tables should have and do not, and the reasons.
var notRun = [][2]string{
	{"crawler-commons (Java)", "The machine that made this table gets packages only from Go, npm and Debian."},
	{"texting_robots, robotxt (Rust)", "The machine that made this table gets packages only from Go, npm and Debian."},
	{"robotspy, reppy (Python)", "The machine that made this table gets packages only from Go, npm and Debian."},
	{"spatie/robots-txt (PHP)", "The machine that made this table gets packages only from Go, npm and Debian."},
	{"Google's parser in WebAssembly", "No package with it was found in npm."},
	{"@trybyte/robotstxt-parser, @playfulsparkle/robotstxt-js (npm)", "npm does not have the packages under these names."},
	{"katana (Go)", "It reads robots.txt to find more URLs, and does not obey it."},
	{"simplecrawler (npm)", "Its adapter did not end within three minutes."},
	{"HTTrack", "It waits for several seconds in each run, so all cases together take too long."},
}

// notRunTable returns notRun as a table in Markdown, followed by the adapters that this machine
// cannot run.
func notRunTable(missing [][2]string) string {
	var b strings.Builder
	b.WriteString("| program | reason |\n| --- | --- |\n")
	for _, row := range append(notRun, missing...) {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	return b.String()
}
