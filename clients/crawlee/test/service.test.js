// Crawls whose service is killed, is not the expected one, or needs a token, and crawls that are stopped.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheerioCrawler, Log } from 'crawlee';
import { polite } from '../polite.js';
import { AGENT, Service, Site, inMemory, links, until } from './kit.js';

/** Returns the address of a socket. A port of a service that is dead could be taken by another test. */
const socket = () => `unix:${path.join(temporary(), 'socket')}`;

const temporary = () => mkdtempSync(path.join(os.tmpdir(), 'crawlee-'));

/** Returns n URLs of a site. */
const pages = (site, n) => Array.from({ length: n }, (_, i) => `${site.url}/${i}`);

/** Returns a polite crawler, and the lines of its log that are about the service. */
function logged(options, crawlerOptions = {}) {
    const lines = [];
    const log = new Log({ level: 4, logger: { log: (level, message) => lines.push(message), getOptions: () => ({}), setOptions() {} } });
    const crawler = new CheerioCrawler({ requestHandler() {}, log, ...crawlerOptions }, inMemory());
    polite(crawler, { agent: AGENT, ...options });
    return { crawler, lines: () => lines.filter((line) => line.includes('grants')) };
}

test('nothing is sent while the service is dead, and the crawl goes on when it is back', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.3\n');
    const service = await Service.start(t, socket(), '-cache', temporary());
    const { crawler, lines } = logged({ service: service.url });
    const run = crawler.run(pages(site, 12));
    await until(() => site.log.length === 4);
    await service.kill();
    await sleep(100); // a request whose turn had come is sent
    const before = site.log.length;
    await sleep(2500);
    assert.equal(site.log.length, before);
    await service.restart();
    const stats = await run;
    assert.equal(stats.requestsFinished, 12);
    assert.deepEqual([...stats.retryHistogram], [12]);
    assert.equal(site.paths().length, 12);
    assert.equal(new Set(site.paths()).size, 12);
    assert.equal(lines().length, 2, lines().join('\n'));
    assert.match(lines()[0], /grants no turns, so no requests are sent until it does/);
    assert.match(lines()[1], /grants turns again/);
    site.assertGaps(300);
});

test('nothing is sent when something else answers instead of the service', async (t) => {
    const site = await Site.start(t, '');
    const rubbish = [
        [200, 'hello'], [201, '{"turn":7}'], [201, '{"tu'], [403, '<h1>Forbidden</h1>'], [500, '{"error":"x"}'], [204, ''],
        [201, 'x'.repeat(3 << 20)], [302, ''], [404, '{"error":"no such path"}'], [201, 'null'],
    ];
    const server = http.createServer((request, response) => {
        const [status, body] = request.url === '/v1/openapi.json' ? [200, '{"info":{"title":"collyrobots serve"}}'] : rubbish[asked++ % rubbish.length];
        response.writeHead(status, { Location: `${site.url}/redirected` }).end(body);
    });
    let asked = 0;
    const listen = socket();
    server.listen(listen.slice('unix:'.length));
    await once(server, 'listening');
    const { crawler, lines } = logged({ service: listen });
    const run = crawler.run(pages(site, 3));
    await until(() => asked > 2 * rubbish.length);
    assert.deepEqual(site.log, []);
    assert.equal(lines().length, 1);
    server.close();
    server.closeAllConnections();

    await Service.start(t, listen);
    const stats = await run;
    assert.equal(stats.requestsFinished, 3);
    assert.equal(lines().length, 2);
});

test('a service with a token', async (t) => {
    const site = await Site.start(t, '');
    const file = path.join(temporary(), 'token');
    writeFileSync(file, 'a token with 26 characters\n');
    const service = await Service.start(t, '-token-file', file);
    const wrong = logged({ service: service.url, token: 'wrong' });
    const run = wrong.crawler.run(pages(site, 2));
    await until(() => wrong.lines().length > 0);
    assert.match(wrong.lines()[0], /status 401: the request has no valid token/);
    await wrong.crawler.teardown();
    await run;
    assert.deepEqual(site.log, []);

    const right = logged({ service: service.url, token: 'a token with 26 characters' });
    const stats = await right.crawler.run(pages(site, 2));
    assert.equal(stats.requestsFinished, 2);
});

test('a service on a socket', async (t) => {
    const site = await Site.start(t, '');
    const service = await Service.start(t, socket());
    const stats = await logged({ service: service.url }).crawler.run(pages(site, 2));
    assert.equal(stats.requestsFinished, 2);
});

test('more pages than the service has turns', async (t) => {
    const site = await Site.start(t, '');
    const service = await Service.start(t, '-max-turns', '2');
    const { crawler, lines } = logged({ service: service.url }, { minConcurrency: 10 });
    const stats = await crawler.run(pages(site, 30));
    assert.equal(stats.requestsFinished, 30);
    assert.ok(lines().length <= 2, lines().join('\n'));
});

test('a crawl ends when the service is dead before the last answer', async (t) => {
    const site = await Site.start(t, '', {
        '/last': async (response) => {
            await service.kill();
            response.end();
        },
    });
    const service = await Service.start(t, socket());
    const child = spawn(process.execPath, ['test/stopped.js', service.url, `${site.url}/last`], {
        cwd: new URL('..', import.meta.url), env: { ...process.env, CRAWLEE_STORAGE_DIR: temporary() }, stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    assert.equal(child.exitCode, 0);
    assert.equal(JSON.parse(output).finished, 1);
});

test('a crawl that is stopped gives its turns back, and its pages to the queue', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 3\n');
    const service = await Service.start(t);
    const child = spawn(process.execPath, ['test/stopped.js', service.url, ...pages(site, 20)], {
        cwd: new URL('..', import.meta.url), env: { ...process.env, CRAWLEE_STORAGE_DIR: temporary() }, stdio: ['ignore', 'pipe', 'inherit'],
    });
    const open = async () => (await service.get('/v1/stats')).hosts?.[0].waiting;
    await until(() => site.paths().length === 2);
    const start = performance.now();
    child.kill('SIGINT');
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    assert.ok(performance.now() - start < 18_000, 'Crawlee waits 20 s for pages that have not ended');
    assert.equal(await open(), 0);
    const { finished, waiting, retries } = JSON.parse(output);
    assert.equal(finished + waiting, 20);
    assert.equal(retries, 0);
    assert.equal(site.paths().length, finished);
    await sleep(3500);
    assert.equal(site.paths().length, finished);
});

test('the example is polite, and it is not without its two lines', async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.2\nDisallow: /private\n', { '/': links('/a', '/b', '/private', '/c') });
    const service = await Service.start(t);
    const lines = readFileSync(new URL('../example.mjs', import.meta.url), 'utf8').split('\n');
    const without = lines.filter((line) => !line.includes('polite'));
    assert.equal(lines.length - without.length, 2);
    const rude = new URL('../without.mjs', import.meta.url);
    writeFileSync(rude, without.join('\n'));
    const run = async (file) => {
        const env = { ...process.env, COLLYROBOTS: service.url, CRAWLEE_STORAGE_DIR: temporary(), CRAWLEE_LOG_LEVEL: 'OFF' };
        const child = spawn(process.execPath, [file, `${site.url}/`], { cwd: new URL('..', import.meta.url), env, stdio: 'inherit' });
        assert.deepEqual(await once(child, 'exit'), [0, null]);
    };
    await run('example.mjs');
    assert.deepEqual(site.paths().sort(), ['/', '/a', '/b', '/c']);
    site.assertGaps(200);
    site.log.length = 0;
    await run('without.mjs');
    assert.deepEqual(site.paths().sort(), ['/', '/a', '/b', '/c', '/private']);
    assert.throws(() => site.assertGaps(200));
});
