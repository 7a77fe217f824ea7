// Crawlers with HTTP against sites whose access logs decide.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { BasicCrawler, CheerioCrawler, FileDownload, HttpCrawler, ProxyConfiguration, RequestList } from 'crawlee';
import { DeniedError, polite } from '../polite.js';
import { AGENT, Service, Site, inMemory, links, redirect, until } from './kit.js';

/** Returns a polite CheerioCrawler, and the errors of the pages that have failed, by path. */
function cheerio(service, options = {}, politeOptions = {}) {
    const errors = {};
    const crawler = new CheerioCrawler({
        requestHandler() {},
        failedRequestHandler({ request }, error) {
            errors[new URL(request.url).pathname] = error;
        },
        ...options,
    }, inMemory());
    return { crawler: polite(crawler, { agent: AGENT, service: service.url, ...politeOptions }), errors };
}

test('a crawl keeps the delay, also at redirects and retries, and requests nothing that is disallowed', async (t) => {
    let failures = 0;
    const site = await Site.start(t, 'User-agent: *\nDisallow: /\n\nUser-agent: ExampleBot\nCrawl-delay: 0.2\nDisallow: /private\n', {
        '/': links('/a', '/moved', '/private', '/trap', '/flaky'),
        '/moved': redirect('/moved/twice', 301),
        '/moved/twice': redirect('/b'),
        '/trap': redirect('/private/trap'),
        '/flaky': (response) => response.writeHead(failures++ < 2 ? 500 : 200).end(),
    });
    const service = await Service.start(t);
    const pages = [];
    const skipped = [];
    const { crawler, errors } = cheerio(service, {
        async requestHandler({ request, enqueueLinks }) {
            pages.push(new URL(request.loadedUrl).pathname);
            await enqueueLinks();
        },
        onSkippedRequest: ({ url, reason }) => skipped.push(`${new URL(url).pathname} ${reason}`),
    });
    const stats = await crawler.run([site.url]);

    assert.deepEqual(pages.sort(), ['/', '/a', '/b', '/flaky']);
    assert.deepEqual(site.paths().sort(), ['/', '/a', '/b', '/flaky', '/flaky', '/flaky', '/moved', '/moved/twice', '/trap']);
    site.assertGaps(200);
    assert.ok(site.log.slice(1).every((access) => access.headers['user-agent'] === AGENT));

    assert.deepEqual(Object.keys(errors).sort(), ['/private', '/trap']);
    assert.ok(errors['/private'] instanceof DeniedError);
    assert.match(errors['/private'].message, /\/private denied: "Disallow: \/private", line 6 of/);
    assert.equal(errors['/trap'].url, `${site.url}/private/trap`);
    assert.deepEqual(skipped.sort(), ['/private robotsTxt', '/trap robotsTxt']);
    assert.equal(stats.requestsFailed, 2);
    assert.equal(stats.requestsFinished, 4);
    assert.deepEqual([...stats.retryHistogram], [5, undefined, 1]); // no page was retried because it was denied
    assert.equal(crawler.stats.errorTracker.total, 2);
    const { hosts } = await service.get('/v1/stats');
    assert.equal(hosts[0].delay, 0.2);
});

test('429 with Retry-After slows the host down', async (t) => {
    const site = await Site.start(t, '', {
        '/busy': (response) => response.writeHead(429, { 'Retry-After': '2' }).end(),
    });
    const service = await Service.start(t);
    const { crawler } = cheerio(service, { maxRequestRetries: 0, maxConcurrency: 1 });
    await crawler.run([`${site.url}/busy`, `${site.url}/next`]);
    assert.deepEqual(site.paths(), ['/busy', '/next']);
    assert.ok(site.log[2].at - site.log[1].at >= 2000);
});

test('a slow host does not stop the others', async (t) => {
    const slow = await Site.start(t, 'User-agent: *\nCrawl-delay: 3600\n');
    const fast = await Site.start(t, '');
    const service = await Service.start(t);
    const { crawler } = cheerio(service);
    const urls = (site, n) => Array.from({ length: n }, (_, i) => `${site.url}/${i}`);
    const run = crawler.run([...urls(slow, 100), ...urls(fast, 100)]);
    await until(() => fast.paths().length === 100);
    assert.ok(slow.log.length <= 2);
    await crawler.teardown();
    await run;
    assert.ok(slow.log.length <= 2);
});

test('timeouts and locks do not end the wait for a turn', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 1.5\n');
    const service = await Service.start(t);
    const { crawler, errors } = cheerio(service, { navigationTimeoutSecs: 1, requestHandlerTimeoutSecs: 1, minConcurrency: 6 });
    const queue = await crawler.getRequestQueue();
    queue.requestLockSecs = 1;
    const stats = await crawler.run(Array.from({ length: 6 }, (_, i) => `${site.url}/${i}`));
    assert.deepEqual(errors, {});
    assert.deepEqual(site.paths().sort(), ['/0', '/1', '/2', '/3', '/4', '/5']);
    assert.deepEqual(stats.retryHistogram, [6]);
    site.assertGaps(1500);
});

test('the time for a response begins when the turn has come', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 1.5\n', { '/hangs': () => {} });
    const service = await Service.start(t);
    const { crawler, errors } = cheerio(service, { navigationTimeoutSecs: 1, maxRequestRetries: 0 });
    const start = performance.now();
    await crawler.run([`${site.url}/hangs`]);
    assert.match(errors['/hangs'].message, /timed out/);
    assert.ok(performance.now() - start < 8000);
});

test('a thousand requests', async (t) => {
    const site = await Site.start(t, '');
    const service = await Service.start(t);
    // The limits of Crawlee are long, because a busy machine may need a minute for all of these requests.
    const { crawler } = cheerio(service, { minConcurrency: 50, navigationTimeoutSecs: 600, requestHandlerTimeoutSecs: 600 });
    const stats = await crawler.run(Array.from({ length: 1000 }, (_, i) => `${site.url}/${i}`));
    assert.equal(stats.requestsFinished, 1000);
    assert.equal(new Set(site.paths()).size, 1000);
    assert.equal(site.paths().length, 1000);
    const { hosts } = await service.get('/v1/stats');
    assert.equal(hosts[0].errors ?? 0, 0);
});

test('sendRequest in a handler takes turns', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.2\nDisallow: /private\n', {
        '/moved': redirect('/api', 303),
        '/api': (response, request) => response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ method: request.method })),
        '/unclear': (response) => response.setHeader('Content-Type', 'application/json').end('{'),
    });
    const service = await Service.start(t);
    const results = [];
    const crawler = new BasicCrawler({
        maxRequestRetries: 0,
        async requestHandler({ sendRequest }) {
            const moved = await sendRequest({ url: `${site.url}/moved`, method: 'POST', body: 'x', responseType: 'json' });
            results.push(moved.body, moved.redirectUrls.map(String), moved.url);
            results.push((await sendRequest({ url: `${site.url}/moved`, followRedirect: false })).statusCode);
            await assert.rejects(sendRequest({ url: `${site.url}/unclear`, responseType: 'json' }), /JSON/);
            await assert.rejects(sendRequest({ url: `${site.url}/private` }), DeniedError);
            await assert.rejects(sendRequest({ url: `${site.url}/moved`, maxRedirects: 0 }), /redirects more than 0 times/);
        },
    }, inMemory());
    await polite(crawler, { agent: AGENT, service: service.url }).run([`${site.url}/`]);
    assert.deepEqual(crawler.stats.errorTracker.total, 0);
    assert.deepEqual(results, [{ method: 'GET' }, [`${site.url}/api`], `${site.url}/api`, 303]);
    assert.deepEqual(site.paths(), ['/moved', '/api', '/moved', '/unclear', '/moved']);
    site.assertGaps(200);
});

test('a redirect to another site takes no secrets with it, and the cookies of a session are kept', async (t) => {
    const other = await Site.start(t, '');
    const site = await Site.start(t, '', {
        '/login': (response) => response.writeHead(302, { Location: '/away', 'Set-Cookie': 'session=1' }).end(),
        '/away': redirect(`${other.url}/`),
    });
    const service = await Service.start(t);
    const { crawler } = cheerio(service);
    const url = `${site.url}/login`;
    await crawler.run([{ url, headers: { Cookie: 'secret=1', Authorization: 'Basic eDp5' } }]);
    assert.equal(site.log[1].headers.cookie, 'secret=1');
    assert.match(site.log[2].headers.cookie, /session=1/);
    assert.equal(site.log[2].headers.authorization, 'Basic eDp5');
    assert.equal(other.log[1].headers.authorization, undefined);
    assert.doesNotMatch(other.log[1].headers.cookie ?? '', /secret/);
});

test('downloads as streams', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.2\nDisallow: /private\n', {
        '/file': redirect('/file.bin'),
        '/file.bin': async (response) => {
            response.setHeader('Content-Type', 'application/octet-stream');
            for (let i = 0; i < 5; i++) {
                response.write(Buffer.alloc(100_000));
                await sleep(50);
            }
            response.end();
        },
    });
    const service = await Service.start(t);
    let bytes = 0;
    const crawler = new FileDownload({
        minConcurrency: 2,
        maxRequestRetries: 0,
        async streamHandler({ stream }) {
            for await (const part of stream) bytes += part.length;
        },
    });
    polite(crawler, { agent: AGENT, service: service.url });
    const stats = await crawler.run([`${site.url}/file.bin`, `${site.url}/private`, `${site.url}/file`]);
    assert.equal(stats.requestsFailed, 1);
    assert.equal(bytes, 1_000_000);
    site.assertGaps(200);
    assert.deepEqual(site.paths(), ['/file.bin', '/file', '/file.bin']);
    assert.ok(site.log[2].at - site.log[1].at >= 400, 'the next request came before the file was read');
});

test('a body that Crawlee does not read does not keep the turn', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.2\n', {
        '/image': (response) => response.setHeader('Content-Type', 'image/png').write(Buffer.alloc(1_000_000)),
    });
    const service = await Service.start(t);
    const crawler = new HttpCrawler({ maxConcurrency: 1, requestHandler() {} }, inMemory());
    const start = performance.now();
    await polite(crawler, { agent: AGENT, service: service.url }).run([`${site.url}/image`, `${site.url}/next`]);
    assert.deepEqual(site.paths(), ['/image', '/next']);
    assert.ok(performance.now() - start < 10_000);
});

test('proxies and sessions rotate as without turns, and a denied page does not harm its session', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nDisallow: /private\n', {
        '/blocked': (response) => response.writeHead(403).end(),
    });
    const service = await Service.start(t);
    const used = [];
    const proxyUrls = await Promise.all([proxy(t, used), proxy(t, used)]);
    const options = () => ({
        maxConcurrency: 1,
        maxSessionRotations: 2,
        sessionPoolOptions: { maxPoolSize: 1 },
        proxyConfiguration: new ProxyConfiguration({ proxyUrls }),
        requestHandler: ({ session }) => assert.equal(session.errorScore, 0),
    });
    const pages = [`${site.url}/a`, `${site.url}/blocked`];
    await new CheerioCrawler(options(), inMemory()).run(pages);
    const paths = site.paths();
    assert.ok(paths.length > 3);

    const { crawler, errors } = cheerio(service, options());
    await crawler.run([...Array.from({ length: 5 }, (_, i) => `${site.url}/private/${i}`), ...pages]);
    assert.equal(Object.keys(errors).length, 6);
    assert.deepEqual(site.paths(), [...paths, ...paths]);
    assert.equal(used.length, site.paths().length);
    assert.equal(new Set(used.slice(paths.length)).size, 2);
});

/** Starts a proxy, and returns its URL. used gets its port for each request. */
async function proxy(t, used) {
    const server = http.createServer((request, response) => {
        used.push(server.address().port);
        const { hostname, port, pathname } = new URL(request.url);
        http.get({ hostname, port, path: pathname, headers: request.headers }, (answer) => {
            response.writeHead(answer.statusCode, answer.headers);
            answer.pipe(response);
        });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return `http://127.0.0.1:${server.address().port}`;
}

test('a crawler with a RequestList', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.2\n');
    const service = await Service.start(t);
    const { crawler } = cheerio(service, { requestList: await RequestList.open(null, [`${site.url}/a`, `${site.url}/b`]) });
    await crawler.run();
    assert.deepEqual(site.paths().sort(), ['/a', '/b']);
    site.assertGaps(200);
});

test('a URL that cannot be requested fails at once', async (t) => {
    const service = await Service.start(t);
    const { crawler, errors } = cheerio(service);
    await crawler.run([`http://127.0.0.1/${'long/'.repeat(15_000)}`]);
    const [error] = Object.values(errors);
    assert.ok(error instanceof DeniedError);
    assert.match(error.message, /bytes/);
});

test('a crawler can run twice', async (t) => {
    const site = await Site.start(t, '');
    const service = await Service.start(t);
    const { crawler } = cheerio(service);
    await crawler.run([`${site.url}/a`]);
    await crawler.run([`${site.url}/b`]);
    assert.deepEqual(site.paths(), ['/a', '/b']);
});

test('a download that takes longer than a turn lasts', async (t) => {
    const site = await Site.start(t, '', {
        '/file': async (response) => {
            for (let i = 0; i < 30; i++) {
                response.write('part ');
                await sleep(100);
            }
            response.end();
        },
    });
    const service = await Service.start(t, '-expire', '1s');
    const { crawler } = cheerio(service, { maxConcurrency: 1 });
    const stats = await crawler.run([`${site.url}/file`, `${site.url}/next`]);
    assert.equal(stats.requestsFinished, 2);
    const { hosts } = await service.get('/v1/stats');
    assert.equal(hosts[0].failed ?? 0, 0);
    assert.equal(hosts[0].last_status, 200);
});

test('an HTTP client of the program', async (t) => {
    const service = await Service.start(t);
    const [site, other] = await Promise.all([Site.start(t, ''), Site.start(t, '')]);
    const headers = { ':status': 429, 'retry-after': '7', link: ['<a>', '<b>'], date: undefined, 'set-cookie': ['secret'] };
    const response = { statusCode: 429, headers, trailers: {}, complete: true, redirectUrls: [], url: site.url, body: '' };
    const run = async (url, response) => {
        const errors = [];
        const crawler = new BasicCrawler({
            maxRequestRetries: 0,
            httpClient: { sendRequest: async () => ({ ...response }) },
            requestHandler: ({ sendRequest }) => sendRequest(),
            failedRequestHandler: (_, error) => errors.push(error.message),
        }, inMemory());
        await polite(crawler, { agent: AGENT, service: service.url }).run([url]);
        return errors;
    };
    assert.deepEqual(await run(site.url, response), []);
    const { hosts } = await service.get('/v1/stats');
    assert.equal(hosts[0].last_status, 429);
    assert.ok(Date.parse(hosts[0].not_before) > Date.now() + 5000);
    const [error] = await run(other.url, { ...response, statusCode: 200, redirectUrls: [new URL('/elsewhere', site.url)] });
    assert.match(error, /follows redirects although followRedirect is false/);
});

test('many slow hosts', async (t) => {
    const slow = await Promise.all(Array.from({ length: 20 }, () => Site.start(t, 'User-agent: *\nCrawl-delay: 0.5\n')));
    const service = await Service.start(t);
    const { crawler } = cheerio(service);
    const start = performance.now();
    const stats = await crawler.run(slow.flatMap((site) => Array.from({ length: 8 }, (_, i) => `${site.url}/${i}`)));
    assert.equal(stats.requestsFinished, 160);
    for (const site of slow) site.assertGaps(500);
    assert.ok(performance.now() - start < 40_000, 'the hosts waited for each other'); // 80 s if they do
});

test('a purpose that the owner of a page disallows', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nContent-Usage: /news/ train-ai=n\n');
    const service = await Service.start(t);
    for (const [purpose, denied] of [[undefined, 0], ['search', 0], ['train-ai', 1], [['search', 'train-ai'], 1]]) {
        const { crawler, errors } = cheerio(service, {}, { purpose });
        await crawler.run([`${site.url}/news/1`, `${site.url}/other`]);
        assert.equal(Object.keys(errors).length, denied);
        if (denied) assert.match(errors['/news/1'].message, /disallows this use: train-ai/);
    }
    assert.equal(site.paths().length, 6);
});

test('mistakes in the program', () => {
    const crawler = new CheerioCrawler({}, inMemory());
    polite(crawler, { agent: AGENT });
    assert.throws(() => polite(crawler, { agent: AGENT }), /already takes turns/);
    assert.throws(() => polite(new CheerioCrawler({}, inMemory()), {}), /agent is missing/);
});
