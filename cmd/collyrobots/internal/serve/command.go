// Package serve is an HTTP service that tells crawlers in any language whether and when they may send
// a request. It is the command collyrobots serve.
//
// A crawler asks for a turn with POST /v1/turns. The response comes when the request may be sent, or
// says that robots.txt denies it. The crawler sends its request, and reports what the site answered
// with POST /v1/turns/ID. All crawlers that use the service share the robots.txt files and the pace
// of each host. The service fetches no pages, keeps no queue, and believes what crawlers report.
//
// openapi.json describes the endpoints, and docs/tools/any-language.md is the guide.
package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

const help = `Usage: collyrobots serve [flags]

Serves turns to crawlers in any language over HTTP. A crawler asks for a turn with POST /v1/turns,
sends its request when the response allows it, and reports the answer with POST /v1/turns/ID. All
crawlers share the robots.txt files and the pace of each host. The live page is at /robots/, and
/v1/openapi.json describes the endpoints. Ctrl-C and SIGTERM end the service.

The exit status is 0 if the service was ended, and 2 if it could not start or has failed.`

// Run runs the command with the arguments after its name, until ctx ends or the service fails, and
// returns the exit status.
func Run(ctx context.Context, args []string, _ io.Reader, _, stderr io.Writer) (status int) {
	if err := run(ctx, args, stderr); err != nil {
		return cli.Fail(stderr, "serve", err)
	}
	return cli.OK
}

func run(ctx context.Context, args []string, stderr io.Writer) (err error) {
	j, err := parse(args, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	log := slog.New(warnings{slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})})
	err = j.open(ctx, log)
	if err != nil {
		return err
	}
	l, err := listen(j.listen, j.token != "")
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	s, err := newService(j.settings, j.options...)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	fmt.Fprintf(stderr, "Listening on %s\n", nameOf(l))
	return s.serve(ctx, l, j.failed, log)
}

// warnings is the slog.Handler of a service. It drops the advice to set ProductToken, because a service
// has crawlers with many names.
type warnings struct{ slog.Handler }

// Handle implements slog.Handler.
func (h warnings) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasSuffix(r.Message, "set ProductToken") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

// A job has the arguments of the command.
type job struct {
	settings
	pace              input.Pace
	listen            string
	tokenFile         string
	allowPrivate      bool   // serve hosts with private addresses
	tdmRep            bool   // read the TDMRep files of the sites
	stopAfterRefusals int    // a host that has refused so many requests in a row gets no turns; 0 means no limit
	redis             string // the URL of the Redis that several services share; "" if there is none
	cache             string // the directory of the store; "" if there is none
	audit             string // the directory of the audit log; "" if there is none
	options           []collyrobots.Option

	// These are opened by open. Each of them may be nil.
	client *redis.Client
	shared *redisstore.Store
	store  store.Store
	log    *audit.Log
	failed <-chan error // gets an error when the audit log cannot be written
}

// parse parses the command line, and reads the token.
func parse(args []string, stderr io.Writer) (*job, error) {
	j := new(job)
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	j.define(flags)
	err := cli.ParseOnly(flags, help, args, stderr)
	if err != nil {
		return nil, err
	}
	err = errors.Join(j.check(), j.set())
	if err == nil && j.tokenFile != "" {
		j.token, err = readToken(j.tokenFile)
	}
	return j, err
}

// define defines the flags.
func (j *job) define(flags *flag.FlagSet) {
	j.pace.Define(flags)
	flags.StringVar(&j.listen, "listen", "127.0.0.1:8094", "listen on this `address`, or on a Unix socket, such as unix:/run/collyrobots.sock")
	flags.StringVar(&j.tokenFile, "token-file", "", "accept only requests with the token in this `file`; without it, only a loopback address or a socket is possible")
	flags.BoolVar(&j.allowPrivate, "allow-private", false, "also serve hosts with private, loopback and link-local addresses")
	flags.BoolVar(&j.tdmRep, "tdmrep", false, "request the TDMRep file of each site before its first page; it decides about turns with a purpose")
	flags.IntVar(&j.maxTurns, "max-turns", 10_000, "the maximum `number` of turns that are open or waited for at once")
	flags.DurationVar(&j.expire, "expire", time.Minute, "a turn that is not answered within this time expires; at most a minute")
	flags.StringVar(&j.redis, "redis", "", "share one pace with all services that use the Redis at this `URL`, such as redis://127.0.0.1:6379")
	flags.StringVar(&j.cache, "cache", "", "keep the robots.txt files in this `directory`, so that a service that is started again keeps the pace")
	flags.StringVar(&j.audit, "audit", "", "keep a log of every request in this `directory`, which collyrobots audit verifies")
	flags.IntVar(&j.stopAfterRefusals, "stop-after-refusals", 5, "grant no more turns for a host that has refused this `number` of requests in a row; 0 means no limit")
}

// check returns the faults of the flags that are numbers.
func (j *job) check() error {
	switch {
	case j.maxTurns < 1 || j.maxTurns > maxMaxTurns:
		return fmt.Errorf("-max-turns %d is not between 1 and %d", j.maxTurns, maxMaxTurns)
	case j.expire < time.Second || j.expire > time.Minute:
		return fmt.Errorf("-expire %v is not between 1s and 1m0s", j.expire)
	case j.cache != "" && j.redis != "":
		return errors.New("-cache cannot be used with -redis, which also keeps the robots.txt files")
	}
	return nil
}

// set makes options of the flags.
func (j *job) set() error {
	options, err := j.pace.Options()
	if err != nil {
		return err
	}
	j.options = append(options,
		collyrobots.StopAfterRefusals(j.stopAfterRefusals),
		collyrobots.RobotsClient(&http.Client{Transport: http.DefaultTransport, Timeout: time.Minute}))
	if j.tdmRep {
		j.options = append(j.options, collyrobots.TDMRep(true))
	}
	if !j.allowPrivate {
		j.options = append(j.options, collyrobots.PrivateNetworks(collyrobots.DenyAll))
	}
	return nil
}

// open opens the stores and the audit log.
func (j *job) open(ctx context.Context, log *slog.Logger) (err error) {
	j.options = append(j.options, collyrobots.Logger(log))
	if j.redis != "" {
		err = j.openRedis(ctx, log)
		if err != nil {
			return fmt.Errorf("-redis: %w", err)
		}
		j.options = append(j.options, collyrobots.Store(j.shared), collyrobots.SharedPace(j.shared))
	}
	if j.cache != "" {
		j.store, err = store.OpenDir(j.cache)
		if err != nil {
			return fmt.Errorf("-cache: %w", err)
		}
		j.options = append(j.options, collyrobots.Store(j.store))
	}
	if j.audit != "" {
		j.log, j.failed, err = cli.OpenLog(j.audit)
		if err != nil {
			return err
		}
		j.options = append(j.options, collyrobots.OnEveryEvent(j.log.Event))
	}
	return nil
}

// openRedis connects to Redis. A lease ends after the turn that it is for.
func (j *job) openRedis(ctx context.Context, log *slog.Logger) error {
	o, err := redis.ParseURL(j.redis)
	if err != nil {
		return err
	}
	o.ContextTimeoutEnabled = true // a turn must not be waited for longer than the crawler asks
	logging.Disable()              // the errors of go-redis contain the same information
	j.client = redis.NewClient(o)
	j.ping = func(ctx context.Context) error { return j.client.Ping(ctx).Err() }
	j.shared, err = redisstore.New(ctx, j.client, redisstore.Lease(j.expire+5*time.Second), redisstore.Logger(log))
	return err
}

// close closes what open has opened.
func (j *job) close() (err error) {
	if j.log != nil {
		err = j.log.Close()
	}
	if j.store != nil {
		err = errors.Join(err, j.store.Close())
	}
	if j.shared != nil {
		err = errors.Join(err, j.shared.Close())
	}
	if j.client != nil {
		err = errors.Join(err, j.client.Close())
	}
	return err
}
