package judge

import (
	"context"
	"time"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// Robots returns the robots.txt in force for t. It fetches the file if that has expired, or if its text
// is no longer known.
func (j *Judge) Robots(ctx context.Context, t Target, f exchange.Fetcher) (report.Robots, error) {
	j.Policies.files.Share() // so that the texts of later fetches are kept
	f.ReadsText = true
	v := Verdict{At: time.Now()}
	a, err := j.prepare(&v, v.At, t, f)
	if err != nil {
		return report.Robots{}, err
	}
	var body []byte
	if v.Policy == nil {
		v.Policy, err = j.Policies.get(ctx, &v, a, t.UserAgent, f)
		if err != nil {
			return report.Robots{}, err
		}
		v.source = j.Delays.setCrawlDelay(time.Now(), v.Host, v.Settings, v.Reader.Name, v.Policy)
		body, _ = v.Reader.cache.Text(ctx, v.Policy)
	}
	return v.robots(body), nil
}

// robots returns the description of the policy of v, whose text is body.
func (v *Verdict) robots(body []byte) report.Robots {
	r := report.Robots{
		RobotsState: reporter.StateOf(v.Policy),
		Authority:   v.Policy.Authority.String(),
		RobotsURL:   v.Policy.RobotsURL(),
		Dialect:     v.Settings.Dialect,
		Option:      v.Settings.override(v.Policy),
		Token:       v.Reader.token(),
		Group:       v.Policy.Group(),
		Delay:       v.Host.Stats(time.Now()).Delay,
		Expires:     v.Policy.Expires(),
		Body:        body,
	}
	if body != nil {
		r.Rules = v.Settings.Dialect.Parse(body)
	}
	return r
}
