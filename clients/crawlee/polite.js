// Package collyrobots-crawlee lets a crawler of Crawlee take a turn from collyrobots serve before each
// request, so that it obeys robots.txt and keeps the pace of each host. See README.md.
import { AsyncLocalStorage } from 'node:async_hooks';
import { once, setMaxListeners } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { PlaywrightCrawler, RequestQueue, RetryRequestError } from 'crawlee';

// extendTimeout moves the end of all timeouts of Crawlee that the running code has. Crawlee does not export
// it, so it is loaded from where Crawlee loads it.
const fromCrawlee = createRequire(createRequire(import.meta.url).resolve('crawlee'));
const { extendTimeout } = createRequire(fromCrawlee.resolve('@crawlee/basic'))('@apify/timeout');

const MAX_REDIRECTS = 10; // as in Crawlee
const ACCEPT = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'; // without the header generator of Crawlee
const MAX_REPLY = 1 << 20; // characters of a response of the service
const PAUSE = 1000; // milliseconds between two attempts to reach the service
const QUIET = 60_000; // milliseconds between two messages that the service grants no turns
const LONG = 20; // milliseconds after which a wait lets another page run
const ANSWER_TIMEOUT = 10_000; // milliseconds for the answer of a turn
const STREAMS = ['media', 'eventsource']; // resources of a page whose responses may have no end
const PICTURES = ['image', 'font']; // resources that do not change the text of a page

const polites = new WeakSet(); // the crawlers that take turns

/** The error of a request that must not be sent. */
export class DeniedError extends Error {
    constructor(url, reply) {
        super(reply.error);
        this.name = 'DeniedError';
        this.url = url;
        this.decision = reply.decision;
    }
}

/** The error of a request that still waited for its turn when the crawl was stopped. It goes back to the queue. */
export class StoppedError extends RetryRequestError {
    constructor(url) {
        super(`the crawl was stopped before the turn of ${url} came`);
        this.name = 'StoppedError';
    }
}

/** Makes a crawler take a turn before each request, and returns the crawler. */
export function polite(crawler, options) {
    if (crawler.browserPool && !(crawler instanceof PlaywrightCrawler)) {
        throw new Error(`polite: ${crawler.constructor.name} is not supported; use a crawler with HTTP or a PlaywrightCrawler`);
    }
    if (!options?.agent) {
        throw new Error('polite: agent is missing; it is the User-Agent header of your crawler, such as "ExampleBot/1.0 (+https://example.com/bot)"');
    }
    if (polites.has(crawler)) throw new Error('polite: the crawler already takes turns');
    polites.add(crawler);
    const log = crawler.log.child({ prefix: 'collyrobots' });
    const crawl = new Crawl(crawler, new Service(options, log), options);
    crawl.attach();
    crawler.httpClient = new Client(crawler.httpClient, crawl);
    if (crawler.browserPool) {
        new Browser(crawler, crawl, options, log).attach();
    }
    return crawler;
}

// Service sends requests to collyrobots serve.
class Service {
    #address;
    #headers;
    #agent;
    #http;
    #log;
    #trouble = false; // whether the log says that the service grants no turns
    #quiet = 0; // the log does not say it again before this time
    #recovery; // a promise that ends when the service can be reached again; undefined if it can be reached
    #waiting = 0; // requests that wait for #recovery

    constructor({ service = process.env.COLLYROBOTS ?? 'http://127.0.0.1:8094', token = process.env.COLLYROBOTS_TOKEN }, log) {
        this.name = service;
        this.#address = address(service);
        this.#http = this.#address.protocol === 'https:' ? https : http;
        // The service closes a connection that is idle for two minutes.
        this.#agent = new this.#http.Agent({ keepAlive: true, timeout: 60_000 });
        this.#headers = token ? { authorization: `Bearer ${token}` } : {};
        this.#log = log;
    }

    // wants returns the reply to a request about a URL, which the service allows or denies. It repeats the request until it
    // has such a reply, however long this takes. It throws the reason of signal when that is aborted.
    async wants(method, path, body, signal) {
        for (;;) {
            signal.throwIfAborted();
            if (this.#recovery) {
                await this.#recover(signal);
                continue;
            }
            let trouble;
            try {
                const reply = await this.#send(method, path, body, { signal });
                if (isDecision(reply)) {
                    this.#recovered();
                    return reply;
                }
                trouble = new Error(`status ${reply.status}: ${reply.body?.error ?? 'not a response of collyrobots serve'}`);
                trouble.pause = reply.pause;
            } catch (error) {
                signal.throwIfAborted();
                trouble = error;
            }
            this.#complain(trouble);
            if (trouble.pause) {
                await sleep(trouble.pause, undefined, { signal }).catch(() => {});
            } else {
                await this.#recover(signal);
            }
        }
    }

    // answer sends the answer of a turn, as long as the turn is open.
    async answer(turn, answer, lifetime) {
        for (const end = Date.now() + lifetime; Date.now() < end; await sleep(PAUSE, undefined, { ref: false })) {
            try {
                const { status } = await this.#send('POST', `/v1/turns/${turn}`, answer, { timeout: ANSWER_TIMEOUT });
                if (status < 500) return; // 404 means that the turn has expired or that the service was started again
            } catch {}
        }
    }

    // close ends the connections that no request uses.
    close() {
        this.#agent.destroy();
    }

    // #recover returns when the service can be reached, or when signal is aborted. One request finds that out for all
    // that wait.
    async #recover(signal) {
        const done = new AbortController();
        this.#waiting++;
        this.#recovery ??= this.#reach().finally(() => (this.#recovery = undefined));
        await Promise.race([this.#recovery, once(signal, 'abort', { signal: done.signal })]);
        this.#waiting--;
        done.abort();
    }

    // #reach returns when the service can be reached, or when no request waits for it.
    async #reach() {
        while (this.#waiting > 0) {
            await sleep(PAUSE);
            const reply = await this.#send('GET', '/v1/openapi.json', undefined, { timeout: ANSWER_TIMEOUT }).catch(() => undefined);
            if (reply?.body?.info?.title === 'collyrobots serve') return;
        }
    }

    #complain(trouble) {
        if (this.#trouble || Date.now() < this.#quiet) return;
        this.#trouble = true;
        this.#quiet = Date.now() + QUIET;
        this.#log.warning(`${this.name} grants no turns, so no requests are sent until it does: ${trouble.message || trouble.code}`);
    }

    #recovered() {
        if (!this.#trouble) return;
        this.#trouble = false;
        this.#log.info(`${this.name} grants turns again`);
    }

    // #send sends a request, and returns the status, the object in the body or undefined, how long a turn stays open,
    // and how long to wait before the next attempt.
    #send(method, path, body, { signal, timeout }) {
        return new Promise((resolve, reject) => {
            const request = this.#http.request({ ...this.#address, method, path: this.#address.path + path, headers: this.#headers, agent: this.#agent, signal });
            if (timeout) request.setTimeout(timeout, () => request.destroy(new Error('no response')));
            request.on('error', reject);
            request.on('response', (response) => {
                let text = '';
                response.setEncoding('utf8');
                response.on('error', reject);
                response.on('data', (part) => {
                    text += part;
                    if (text.length > MAX_REPLY) response.destroy(new Error('the response is too long'));
                });
                response.on('end', () => resolve(readReply(response, text)));
            });
            request.end(body && JSON.stringify(body));
        });
    }
}

// address returns the options of http.request for the address of a service, such as unix:/run/collyrobots.sock.
function address(service) {
    if (service.startsWith('unix:')) return { socketPath: service.slice('unix:'.length), path: '' };
    const { protocol, hostname, port, pathname } = new URL(service);
    return { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port, path: pathname.replace(/\/$/, '') };
}

function readReply(response, text) {
    const reply = { status: response.statusCode };
    try {
        reply.body = JSON.parse(text);
    } catch {}
    const retryAfter = Number(response.headers['retry-after']);
    if (retryAfter > 0) reply.pause = 1000 * Math.min(retryAfter, 60);
    // The clocks of two machines differ, so both times are of the service. Date is in whole seconds, so up to a second too early.
    reply.lifetime = Math.max(500, Date.parse(reply.body?.expires) - Date.parse(response.headers.date) - 1000);
    return reply;
}

// isDecision reports whether a reply says what to do with a URL: it may be requested now, it must not be requested, or
// it cannot be requested.
function isDecision({ status, body }) {
    if (status === 201) return typeof body?.turn === 'string';
    if (status === 200) return typeof body?.allowed === 'boolean';
    return (status === 400 || status === 403 || status === 413) && typeof body?.error === 'string';
}

// Crawl has what the requests of a crawler share.
class Crawl {
    #crawler;
    #service;
    #purpose;
    #tasks = new AsyncLocalStorage(); // has the task of a page, in what its handler calls
    #stop = newStop(); // is aborted when the crawl is stopped
    #answers = new Set(); // promises of the answers that are on their way

    constructor(crawler, service, { agent, purpose }) {
        this.#crawler = crawler;
        this.#service = service;
        this.agent = agent;
        this.#purpose = [purpose ?? []].flat().join();
    }

    // attach replaces methods of the crawler.
    attach() {
        const crawler = this.#crawler;
        crawler.respectRobotsTxtFile = false; // it requests robots.txt without a turn; the service denies what it denies
        const runRequestHandler = crawler._runRequestHandler.bind(crawler);
        crawler._runRequestHandler = (context) => this.#run(context, runRequestHandler);
        const stop = () => this.#stop.abort();
        const run = crawler.run.bind(crawler);
        crawler.run = async (...args) => {
            if (this.#stop.signal.aborted) this.#stop = newStop();
            process.once('SIGINT', stop);
            crawler.events.on('aborting', stop);
            crawler.events.on('migrating', stop);
            try {
                return await run(...args);
            } finally {
                process.off('SIGINT', stop);
                crawler.events.off('aborting', stop);
                crawler.events.off('migrating', stop);
            }
        };
        const teardown = crawler.teardown.bind(crawler);
        crawler.teardown = async () => {
            if (crawler.autoscaledPool?.currentConcurrency > 0) void crawler.autoscaledPool.pause(); // start no other pages
            stop();
            await teardown();
            await this.#answered();
            this.#service.close();
        };
    }

    // #answered waits until the answers have been sent, or until the service has not taken them for a while.
    async #answered() {
        const done = new AbortController();
        const late = sleep(ANSWER_TIMEOUT, undefined, { signal: done.signal }).catch(() => {});
        await Promise.race([Promise.all(this.#answers), late]);
        done.abort();
    }

    // #run runs the request handler of a page. A page that is denied, or that has not got its turn, says nothing about
    // its session, so these pages have none when Crawlee rates the session.
    async #run(context, runRequestHandler) {
        const task = { context, signal: this.#stop.signal, streams: new Set() };
        try {
            return await this.#tasks.run(task, runRequestHandler, context);
        } catch (error) {
            if (error instanceof StoppedError) {
                context.request.retryCount--; // Crawlee counts a retry
                context.session = undefined;
            }
            if (error instanceof DeniedError) {
                context.request.noRetry = true;
                context.session = undefined;
                if (error.decision) await this.#crawler.handleSkippedRequest({ url: context.request.url, reason: 'robotsTxt' });
            }
            throw error;
        } finally {
            for (const stream of task.streams) stream.destroy(); // a body that was not read would keep its turn open
        }
    }

    // outside calls a function that belongs to no page.
    outside(call) {
        return this.#tasks.run(undefined, call);
    }

    // turn returns the turn of a request, when it has come.
    async turn(url) {
        const body = { url, agent: this.agent, purpose: this.#purpose || undefined };
        const reply = await this.#wants(url, 'POST', '/v1/turns', body);
        return new Turn(reply, (...answer) => this.#track(this.#service.answer(...answer)));
    }

    // check throws a DeniedError if robots.txt does not allow a URL.
    async check(url) {
        const query = new URLSearchParams({ url, agent: this.agent, purpose: this.#purpose });
        const reply = await this.#wants(url, 'GET', `/v1/check?${query}`);
        if (!reply.body.allowed) throw new DeniedError(url, { error: `${url} denied: ${reply.body.reason}`, decision: reply.body });
    }

    // keep destroys a stream when the request handler has ended, unless it has ended before.
    keep(stream) {
        this.#tasks.getStore()?.streams.add(stream);
    }

    async #wants(url, method, path, body) {
        const task = this.#tasks.getStore();
        const signal = task?.signal ?? this.#stop.signal;
        const resume = task ? this.#pause(task.context.request) : () => {};
        try {
            const reply = await this.#service.wants(method, path, body, signal);
            if (reply.status >= 400) throw new DeniedError(url, reply.body);
            return reply;
        } catch (error) {
            throw signal.aborted ? new StoppedError(url) : error;
        } finally {
            resume();
        }
    }

    // #pause stops the clocks of a page that waits for its turn, and lets another page run meanwhile. The returned
    // function ends this.
    #pause(request) {
        const start = Date.now();
        const queue = this.#crawler.requestQueue;
        const lock = queue instanceof RequestQueue ? queue.requestLockSecs * 1000 : NaN; // other queues have no locks
        const pool = this.#crawler.autoscaledPool;
        let added = 0; // milliseconds
        let locked = start + lock;
        let raised = false;
        const extend = () => {
            extendTimeout(Date.now() + 60_000 - start - added);
            added = Date.now() + 60_000 - start;
        };
        const prolong = async () => {
            if (!(locked < Date.now() + lock)) return;
            locked = Infinity;
            const reply = await queue.client.prolongRequestLock(request.id, { lockSecs: lock / 1000 }).catch(() => {});
            if (reply) locked = +reply.lockExpiresAt;
        };
        const raise = () => {
            if (this.#crawler.browserPool || !pool || pool.desiredConcurrency >= pool.maxConcurrency) return;
            raised = true;
            pool.minConcurrency++; // Crawlee starts fewer pages on a busy machine, but a page that waits makes none busy
            pool.desiredConcurrency++;
            void pool.notify();
        };
        extend();
        const clock = setInterval(() => {
            extend();
            void prolong();
        }, Math.min(10_000, lock / 4 || Infinity));
        const long = setTimeout(raise, LONG);
        return () => {
            clearInterval(clock);
            clearTimeout(long);
            extendTimeout(Date.now() - start - added);
            if (Date.now() - start > PAUSE) void prolong();
            if (!raised) return;
            pool.minConcurrency--;
            pool.desiredConcurrency = Math.max(pool.minConcurrency, pool.desiredConcurrency - 1);
        };
    }

    #track(promise) {
        this.#answers.add(promise);
        promise.finally(() => this.#answers.delete(promise));
    }
}

// newStop returns a controller whose signal many requests wait for.
function newStop() {
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    return stop;
}

// Turn is the permission to send one request.
class Turn {
    #id;
    #lifetime;
    #send;

    constructor({ body, lifetime }, send) {
        this.#id = body.turn;
        this.#lifetime = lifetime > 0 ? lifetime : 60_000;
        this.#send = send;
    }

    // answered ends the turn with what the site has answered.
    answered(status, headers, error) {
        this.#answer({ status, headers: readHeaders(headers), error: error && reasonOf(error) });
    }

    // failed ends the turn of a request that has got no response.
    failed(error) {
        this.#answer({ error: reasonOf(error) });
    }

    // unused ends the turn of a request that was not sent.
    unused() {
        this.#answer({ error: 'not_sent' });
    }

    // follow ends the turn when the body of a response was read, or when reading it takes so long that the turn would
    // expire.
    follow({ stream, statusCode, headers }) {
        const end = (error) => {
            clearTimeout(late);
            this.answered(statusCode, headers, error);
        };
        const late = setTimeout(end, 0.8 * this.#lifetime);
        for (const event of ['end', 'close', 'error']) stream.on(event, end);
    }

    #answer(answer) {
        if (!this.#send) return;
        this.#send(this.#id, answer, this.#lifetime);
        this.#send = undefined;
    }
}

// readHeaders returns the headers of a response as the service expects them, without cookies. In HTTP/2, :status is a number.
function readHeaders(headers) {
    const kept = Object.entries(without(headers, ['set-cookie'])).filter(([name, value]) => !name.startsWith(':') && value !== undefined);
    return Object.fromEntries(kept.map(([name, value]) => [name, [value].flat().map(String)]));
}

// reasonOf returns the text of an error as the service expects it.
function reasonOf(error) {
    return error.code === 'ECONNRESET' ? 'reset' : (error.message || error.code || String(error)).slice(0, 300);
}

// Client is the HTTP client of a crawler. It takes a turn for each request of another HTTP client, and follows
// redirects itself.
class Client {
    #client;
    #crawl;

    constructor(client, crawl) {
        this.#client = client;
        this.#crawl = crawl;
    }

    /** Implements BaseHttpClient. */
    async sendRequest(request) {
        return this.#follow(request, undefined, async (step, turn) => {
            const response = await this.#client.sendRequest(step);
            turn.answered(response.statusCode, response.headers);
            return response;
        });
    }

    /** Implements BaseHttpClient. */
    async stream(request, onRedirect) {
        const response = await this.#follow(request, onRedirect, async (step, turn) => {
            const response = await this.#client.stream(step);
            turn.follow(response);
            return response;
        });
        this.#crawl.keep(response.stream);
        return response;
    }

    // #follow calls send for a request and the requests to which it is redirected, each with a turn of its own.
    async #follow(request, onRedirect, send) {
        const { followRedirect = true, maxRedirects = MAX_REDIRECTS } = request;
        let step = { useHeaderGenerator: false, ...request, followRedirect: false, retry: { limit: 0 } };
        step.headers = { ...without(step.headers, ['user-agent']), 'user-agent': this.#crawl.agent };
        if (!Object.keys(step.headers).some((name) => name.toLowerCase() === 'accept')) step.headers.accept = ACCEPT;
        for (const redirects = []; ; ) {
            const response = await this.#send(step, send);
            try {
                const next = nextStep(step, response);
                const follow = typeof followRedirect === 'function' ? next && followRedirect(response) : followRedirect;
                if (!next || !follow) {
                    response.redirectUrls = redirects;
                    return response;
                }
                redirects.push(next.url);
                if (redirects.length > maxRedirects) throw new Error(`${request.url} redirects more than ${maxRedirects} times`);
                onRedirect?.(response, next);
                step = next;
            } catch (error) {
                response.stream?.destroy();
                throw error;
            }
            response.stream?.destroy();
        }
    }

    async #send(step, send) {
        const turn = await this.#crawl.turn(String(step.url));
        try {
            const response = await send(step, turn);
            if (response.redirectUrls?.length) throw new Error('polite: the HTTP client of the crawler follows redirects although followRedirect is false');
            return response;
        } catch (error) {
            if (error.response?.statusCode) {
                turn.answered(error.response.statusCode, error.response.headers);
            }
            turn.failed(error);
            throw error;
        }
    }
}

// nextStep returns the request to which a response redirects a request, or undefined if it is no redirect.
function nextStep(step, response) {
    const location = locationOf(response.statusCode, response.headers);
    if (!location) return undefined;
    const url = new URL(location, step.url);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Error(`${step.url} redirects to ${url}`);
    const next = { ...step, url, headers: { ...step.headers } };
    const method = (step.method ?? 'GET').toUpperCase();
    if (response.statusCode === 303 ? method !== 'HEAD' : method === 'POST' && response.statusCode < 303) {
        next.method = 'GET';
        delete next.body;
        next.headers = without(next.headers, ['content-length', 'content-type', 'content-encoding']);
    }
    if (next.body !== undefined && typeof next.body !== 'string' && !Buffer.isBuffer(next.body)) {
        throw new Error(`${step.url} redirects to ${url}, but a body that is a stream cannot be sent again`);
    }
    if (url.origin !== new URL(step.url).origin) {
        next.headers = without(next.headers, ['host', 'cookie', 'authorization']);
    }
    return next;
}

// locationOf returns the Location header of a redirect, or undefined if a response is none.
function locationOf(status, headers) {
    if (![300, 301, 302, 303, 307, 308].includes(status) || !headers.location) return undefined;
    return Buffer.from(headers.location, 'latin1').toString();
}

// without returns headers without those that have one of the names.
function without(headers = {}, names) {
    return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name.toLowerCase())));
}

// Browser makes the pages of a PlaywrightCrawler take turns. A document takes a turn for itself and for each redirect. The other
// requests of a page must be allowed by robots.txt, but they take no turn.
class Browser {
    #pool;
    #crawl;
    #log;
    #unsent; // the types of resources that are not requested
    #timeout;
    #contexts = new WeakSet(); // the contexts that have a route
    #visits = new WeakMap(); // the visit of a page whose goto runs

    constructor(crawler, crawl, { images = false }, log) {
        this.#pool = crawler.browserPool;
        this.#crawl = crawl;
        this.#log = log;
        this.#unsent = images ? STREAMS : [...STREAMS, ...PICTURES];
        this.#timeout = crawler.navigationTimeoutMillis;
    }

    // attach adds hooks to the browsers of the crawler. The requests of a service worker would not pass the route of a
    // context.
    attach() {
        this.#pool.preLaunchHooks.push((_, launchContext) => {
            launchContext.launchOptions = { ...launchContext.launchOptions, serviceWorkers: 'block' };
        });
        this.#pool.prePageCreateHooks.push((_, controller, options) => {
            if (options && controller.launchContext.useIncognitoPages) options.serviceWorkers = 'block';
        });
        this.#pool.postPageCreateHooks.push(async (page) => {
            page.goto = this.#goto(page, page.goto.bind(page));
            passOn(page);
            const context = page.context();
            if (this.#contexts.has(context)) return;
            this.#contexts.add(context);
            await context.route(/^https?:/i, (route) => this.#crawl.outside(() => this.#handle(route)));
            passOn(context);
        });
    }

    // #goto returns a goto that waits for the turn before the timeout of goto begins. At a redirect it begins again.
    #goto(page, goto) {
        return async (url, options) => {
            for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
                const visit = { url: withoutFragment(url), turn: undefined, redirect: undefined, error: undefined };
                if (visit.url) visit.turn = await this.#crawl.turn(visit.url);
                this.#visits.set(page, visit);
                try {
                    return await goto(url, options);
                } catch (error) {
                    if (visit.error || !visit.redirect) throw visit.error ?? error;
                    url = visit.redirect;
                } finally {
                    visit.turn?.unused();
                    this.#visits.delete(page);
                }
            }
            throw new Error(`${url} is the end of ${MAX_REDIRECTS} redirects, and redirects again`);
        };
    }

    // #handle handles a request of a page.
    async #handle(route) {
        const request = route.request();
        try {
            if (request.isNavigationRequest()) {
                await this.#document(route, request);
            } else {
                await this.#resource(route, request);
            }
        } catch (error) {
            if (error instanceof DeniedError) this.#log.debug(error.message);
            await route.abort(error instanceof DeniedError ? 'blockedbyclient' : 'failed').catch(() => {}); // the page may be closed
        }
    }

    // #document requests a document. In a page whose goto runs, a redirect is left to goto. In other pages and in frames,
    // the document that the browser gets leads to the location.
    async #document(route, request) {
        const visit = this.#visitOf(request);
        const url = request.url();
        try {
            const turn = takeTurn(visit, url) ?? (await this.#crawl.turn(url));
            const response = await this.#fetch(route, request, { turn });
            const location = locationOf(response.status(), response.headers());
            if (!location) return await route.fulfill({ response });
            const target = new URL(location, url);
            if (!target.hash) target.hash = new URL(url).hash;
            if (request.method() !== 'GET' && [307, 308].includes(response.status())) throw new Error(`${url} redirects a ${request.method()}`);
            if (!visit) return await route.fulfill({ contentType: 'text/html', body: refresh(target) });
            visit.redirect = target.href;
            await route.abort('aborted');
        } catch (error) {
            if (visit) visit.error ??= error;
            throw error;
        }
    }

    // #visitOf returns the visit of the page whose main document a request is for.
    #visitOf(request) {
        try {
            const frame = request.frame();
            return frame.parentFrame() ? undefined : this.#visits.get(frame.page());
        } catch {
            return undefined; // the page has no frame yet, because another page has opened it
        }
    }

    // #resource requests what a page needs. All redirects must be allowed.
    async #resource(route, request) {
        if (this.#unsent.includes(request.resourceType())) return route.abort('blockedbyclient');
        let url = request.url();
        for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
            await this.#crawl.check(url);
            const response = await this.#fetch(route, request, { url });
            const location = locationOf(response.status(), response.headers());
            if (!location) return route.fulfill({ response });
            url = new URL(location, url).href;
        }
        throw new Error(`${request.url()} redirects more than ${MAX_REDIRECTS} times`);
    }

    // #fetch sends a request without following a redirect, and answers its turn if it has one.
    async #fetch(route, request, { url, turn }) {
        try {
            const headers = { ...request.headers(), 'user-agent': this.#crawl.agent };
            const response = await route.fetch({ url, headers, maxRedirects: 0, timeout: this.#timeout });
            turn?.answered(response.status(), response.headers());
            return response;
        } catch (error) {
            turn?.failed(error);
            throw error;
        }
    }
}

// passOn lets the routes that are added to a page or a context later pass requests on to the route of this package. Crawlee
// itself adds a route for requests that are no GET, which continues them.
function passOn(target) {
    const passing = new WeakMap(); // from the handler of a route to the one that was added for it
    const { route, unroute } = target;
    target.route = (url, handler, options) => {
        if (!passing.has(handler)) {
            passing.set(handler, (r, request) => {
                r.continue = r.fallback;
                return handler(r, request);
            });
        }
        return route.call(target, url, passing.get(handler), options);
    };
    target.unroute = (url, handler) => unroute.call(target, url, passing.get(handler) ?? handler);
}

// takeTurn returns the turn of a visit, which may be undefined, if it is for a URL. Another turn is given back, because it could
// let the next one wait.
function takeTurn(visit, url) {
    const turn = visit?.turn;
    if (!turn) return undefined;
    visit.turn = undefined;
    if (visit.url === url) return turn;
    turn.unused();
    return undefined;
}

// withoutFragment returns a URL as a request has it, or undefined if it is not the URL of a web page.
function withoutFragment(text) {
    if (!/^https?:/i.test(text) || !URL.canParse(text)) return undefined;
    const url = new URL(text);
    url.hash = '';
    return url.href;
}

// refresh returns a document that leads to a URL.
function refresh(url) {
    const escaped = url.href.replace(/[&"<>]/g, (c) => `&#${c.charCodeAt(0)};`);
    return `<!doctype html><meta http-equiv="refresh" content="0;url=${escaped}">`;
}
