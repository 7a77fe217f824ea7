package collyrobots

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// Pause stops the requests to a host until Resume is called. The host is written as in HostStats: with
// the port unless it is the default one. If host is "", Pause stops the requests to all hosts, also to
// those that the crawl finds later.
//
// A host that is paused gets no request of any kind: no page, redirect, robots.txt or sitemap, and no
// request of an http.Client or of Acquire. Requests that were sent before go on. The pages wait in
// their order, and Collector.Wait waits for them; the context of a request and Close end its wait. With
// the option Frontier the pages wait in its urlstore.Store. A pause does not outlast the Plugin.
//
// HostStats.Source and the Source of an EventWaiting are SourcePaused during a pause. The error says
// that host is not the name of a host, or that the Plugin is zero.
func (p *Plugin) Pause(host string) error { return p.pause(host, true) }

// Resume ends the pause of a host, or all pauses if host is "". After Pause(""), Resume of one host
// lets this host go on, and the others stay paused. The error is like that of Pause.
func (p *Plugin) Resume(host string) error { return p.pause(host, false) }

// pause makes a pause begin or end.
func (p *Plugin) pause(host string, paused bool) error {
	err := p.usable()
	if err != nil {
		return err
	}
	name, err := hostNamed(host)
	if err != nil {
		return err
	}
	p.judge.Wire.Pause(name, paused)
	facts := slog.String("host", name)
	if name == "" {
		facts = slog.Bool("all", true)
	}
	if paused {
		p.judge.Report.Log.Info("host is paused, its requests wait for Resume", facts)
		return nil
	}
	p.judge.Report.Log.Info("the pause of the host has ended", facts)
	return nil
}

// hostNamed returns the name of a host in normal form. The error says that it is not the name of a host.
func hostNamed(host string) (string, error) {
	if host == "" {
		return "", nil
	}
	scheme := "http"
	if strings.HasSuffix(host, ":443") {
		scheme = "https"
	}
	u, err := url.Parse(scheme + "://" + host)
	if err != nil || u.Host != host {
		return "", fmt.Errorf("collyrobots: %.100q is not the name of a host", host)
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return "", fmt.Errorf("collyrobots: %.100q is not the name of a host: %w", host, err)
	}
	return a.Host, nil
}
