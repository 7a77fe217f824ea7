package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

const auditUsage = `Usage: collyrobots audit verify [flags] DIR...
       collyrobots audit site [flags] DIR... HOST
       collyrobots audit export [flags] DIR...

Works with the logs that package audit has written.

  verify  checks logs; those of processes that shared their pace are checked together
  site    says what a crawl did to a host
  export  prints the entries as JSON lines or as CSV, or writes them and the robots.txt files as WARC

The exit status is 0, or 1 if a log has faults, or 2 if it could not be read.`

// auditCommands are the commands below the command audit.
var auditCommands = map[string]func(flags *flag.FlagSet, args []string, stdout, stderr io.Writer) (status int, err error){
	"verify": auditVerify,
	"site":   auditSite,
	"export": auditExport,
}

// runAudit runs the command audit.
func runAudit(_ context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) (status int) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	run, ok := auditCommands[name]
	if !ok {
		flags := flag.NewFlagSet("audit", flag.ContinueOnError)
		err := cli.Parse(flags, auditUsage, args, stderr)
		if err == nil {
			err = errors.New("want verify, site or export; collyrobots audit -h prints the usage")
		}
		return cli.Fail(stderr, "audit", err)
	}
	flags := flag.NewFlagSet("audit "+name, flag.ContinueOnError)
	status, err := run(flags, args[1:], stdout, stderr)
	if err != nil {
		return cli.Fail(stderr, flags.Name(), err)
	}
	return status
}

// auditArgs parses the flags of a command below audit and returns its arguments, of which there
// must be at least min.
func auditArgs(flags *flag.FlagSet, args []string, stderr io.Writer, min int) (rest []string, err error) {
	err = cli.Parse(flags, auditUsage, args, stderr)
	if err != nil {
		return nil, err
	}
	rest, err = input.Arguments(flags.Args(), "", nil)
	if err == nil && len(rest) < min {
		err = errors.New("too few arguments; collyrobots audit -h prints the usage")
	}
	return rest, err
}

// auditVerify runs the command audit verify.
func auditVerify(flags *flag.FlagSet, args []string, stdout, stderr io.Writer) (status int, err error) {
	key := flags.String("key", "", "trust only this `key`: the content of key.pub; several are separated by commas")
	checkpoint := flags.String("checkpoint", "", "compare the log with this earlier checkpoint in a `file`, which another party holds")
	asJSON := flags.Bool("json", false, "print the report as JSON")
	dirs, err := auditArgs(flags, args, stderr, 1)
	if err != nil {
		return 0, err
	}
	var v audit.Verifier
	if *key != "" {
		v.Keys = strings.Split(*key, ",")
	}
	if *checkpoint != "" {
		text, err := os.ReadFile(*checkpoint)
		if err != nil {
			return 0, err
		}
		v.Checkpoints = append(v.Checkpoints, text)
	}
	report, err := v.Verify(dirs...)
	if err != nil {
		return 0, err
	}
	if *asJSON {
		err = term.JSON(stdout, report)
	} else {
		err = report.WriteText(safeWriter{stdout})
	}
	return verdictOf(report.OK()), err
}

// verdictOf returns the exit status of a verification.
func verdictOf(ok bool) int {
	if ok {
		return cli.OK
	}
	return cli.Negative
}

// A safeWriter writes text from logs, which may have any bytes, to a terminal.
type safeWriter struct{ w io.Writer }

// Write implements io.Writer.
func (s safeWriter) Write(p []byte) (int, error) {
	lines := strings.Split(string(p), "\n")
	for i, line := range lines {
		lines[i] = term.Safe(line)
	}
	_, err := io.WriteString(s.w, strings.Join(lines, "\n"))
	return len(p), err
}

// auditSite runs the command audit site.
func auditSite(flags *flag.FlagSet, args []string, stdout, stderr io.Writer) (status int, err error) {
	page := flags.String("html", "", "write the report as a page to this `file`")
	rest, err := auditArgs(flags, args, stderr, 2)
	if err != nil {
		return 0, err
	}
	last := len(rest) - 1
	site, err := audit.Site(rest[last], rest[:last]...)
	if err != nil {
		return 0, err
	}
	if *page == "" {
		return verdictOf(site.OK), site.WriteText(safeWriter{stdout})
	}
	file, err := os.Create(*page)
	if err != nil {
		return 0, err
	}
	err = errors.Join(site.WriteHTML(file), file.Close())
	return verdictOf(site.OK), err
}

// auditExport runs the command audit export.
func auditExport(flags *flag.FlagSet, args []string, stdout, stderr io.Writer) (status int, err error) {
	format := flags.String("format", "jsonl", "`jsonl`, with all fields; csv, with those of requests; or warc, for web archives")
	host := flags.String("host", "", "only events of this `host`")
	dirs, err := auditArgs(flags, args, stderr, 1)
	if err != nil {
		return 0, err
	}
	if *format == "warc" {
		return exportWARC(dirs, *host, stdout, stderr)
	}
	write := writeJSONEntry
	table := csv.NewWriter(stdout)
	switch *format {
	case "jsonl":
	case "csv":
		write = func(_ io.Writer, e audit.IndexedEntry) error { return writeCSVEntry(table, e) }
		err = table.Write(csvColumns)
	default:
		err = fmt.Errorf("unknown format %q: want jsonl, csv or warc", *format)
	}
	if err != nil {
		return 0, err
	}
	status = cli.OK
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "checkpoint")); err != nil {
			return 0, err
		}
		for e, err := range audit.Entries(dir) {
			if err != nil {
				term.Errors(stderr, "collyrobots audit export", err)
				status = cli.Negative
			}
			if e.V == 0 || *host != "" && (e.Event == nil || e.Event.Host != *host) {
				continue
			}
			if err := write(stdout, e); err != nil {
				return 0, err
			}
		}
	}
	table.Flush()
	return status, table.Error()
}

// exportWARC writes logs as a WARC file.
func exportWARC(dirs []string, host string, stdout, stderr io.Writer) (status int, err error) {
	if host != "" {
		return 0, errors.New("-host cannot be used with -format warc")
	}
	if term.Width(stdout) > 0 {
		return 0, errors.New("a WARC file has the bytes that sites have sent, which are not for a terminal; write it to a file, as in > crawl.warc")
	}
	err = audit.ExportWARC(stdout, dirs...)
	if errors.Is(err, audit.ErrDamaged) {
		term.Errors(stderr, "collyrobots audit export", err)
		return cli.Negative, nil
	}
	return cli.OK, err
}

// writeJSONEntry writes an entry with its index as one line of JSON.
func writeJSONEntry(w io.Writer, e audit.IndexedEntry) error {
	return term.JSONLine(w, struct {
		Entry uint64             `json:"entry"`
		Event *collyrobots.Event `json:"event,omitempty"`
		Log   *audit.Notice      `json:"log,omitempty"`
		Body  string             `json:"body,omitempty"`
	}{e.Index, e.Event, e.Log, e.Body})
}

var csvColumns = []string{"entry", "time", "kind", "host", "url", "request_kind", "status", "bytes", "gap", "delay", "source", "allowed", "reason", "error"}

// writeCSVEntry writes the columns of an event. Durations are numbers of seconds.
func writeCSVEntry(w *csv.Writer, e audit.IndexedEntry) error {
	if e.Event == nil {
		return nil
	}
	ev := e.Event
	row := []string{
		strconv.FormatUint(e.Index, 10), ev.Time.UTC().Format(time.RFC3339Nano), string(ev.Kind), ev.Host, ev.URL,
		string(ev.RequestKind), number(int64(ev.Status)), number(ev.Bytes), seconds(ev.Gap), seconds(ev.Delay), string(ev.Source), "", "", "",
	}
	if d := ev.Decision; d != nil {
		row[11] = strconv.FormatBool(d.Allowed)
		row[12] = string(d.Reason)
	}
	if ev.Err != nil {
		row[13] = ev.Err.Error()
	}
	for i, cell := range row {
		if strings.HasPrefix(cell, "=") || strings.HasPrefix(cell, "+") || strings.HasPrefix(cell, "@") {
			row[i] = "'" + cell // a spreadsheet would take it for a formula
		}
	}
	return w.Write(row)
}

// number returns a number as text, or "" for 0.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}
