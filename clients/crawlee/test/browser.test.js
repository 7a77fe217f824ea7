// Crawlers with a browser, against sites whose access logs decide. They need the package playwright-core, and Chromium.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AdaptivePlaywrightCrawler, PlaywrightCrawler, PuppeteerCrawler } from 'crawlee';
import { DeniedError, polite } from '../polite.js';
import { AGENT, Service, Site, inMemory, redirect, until } from './kit.js';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const { chromium } = await import('playwright-core').catch(() => ({}));
const skip = !chromium ? 'the package playwright-core is not installed' : !existsSync(executablePath) && `there is no ${executablePath}; CHROMIUM can name another browser`;

/** Returns a polite crawler with a browser, and the errors of the pages that have failed, by path. */
function browser(service, options = {}, politeOptions = {}, Crawler = PlaywrightCrawler) {
    const errors = {};
    const crawler = new Crawler({
        requestHandler() {},
        failedRequestHandler({ request }, error) {
            errors[new URL(request.url).pathname] = error;
        },
        maxRequestRetries: 0,
        ...options,
        launchContext: { launcher: chromium, ...options.launchContext, launchOptions: { executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'], headless: true } },
    }, inMemory());
    return { crawler: polite(crawler, { agent: AGENT, service: service.url, ...politeOptions }), errors };
}

const html = (text) => (response) => response.end(`<!doctype html><title>page</title>${text}`);
const as = (type, text) => (response) => response.setHeader('Content-Type', type).end(text);

for (const useIncognitoPages of [false, true]) {
    test(`documents take turns, also when they are redirected (useIncognitoPages: ${useIncognitoPages})`, { skip }, async (t) => {
        const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.5\nDisallow: /private\n', {
            '/': html('<a href="/a">a</a> <a href="/moved">moved</a> <a href="/trap">trap</a> <a href="/private">private</a>'),
            '/moved': (response) => response.writeHead(302, { Location: '/moved/twice', 'Set-Cookie': 'seen=1' }).end(),
            '/moved/twice': redirect('/b?q=1&r=2#part', 301),
            '/trap': redirect('/private/trap'),
            '/loop': redirect('/loop'),
        });
        const service = await Service.start(t);
        const pages = [];
        const { crawler, errors } = browser(service, {
            launchContext: { useIncognitoPages },
            async requestHandler({ request, response, page, enqueueLinks }) {
                pages.push([new URL(request.loadedUrl).pathname, response.status(), await page.title()]);
                await enqueueLinks();
            },
        });
        const stats = await crawler.run([`${site.url}/`, `${site.url}/loop`]);
        assert.deepEqual(pages.sort(), [['/', 200, 'page'], ['/a', 200, '/a'], ['/b', 200, '/b']]);
        const loops = site.paths().filter((path) => path === '/loop');
        assert.equal(loops.length, 11);
        assert.deepEqual(site.paths().filter((path) => path !== '/loop').sort(), ['/', '/a', '/b', '/moved', '/moved/twice', '/trap']);
        site.assertGaps(500);
        assert.ok(site.log.slice(1).every(({ headers }) => headers['user-agent'] === AGENT));
        assert.equal(site.log.find(({ path }) => path === '/b').headers.cookie, 'seen=1');
        assert.deepEqual(Object.keys(errors).sort(), ['/loop', '/private', '/trap']);
        assert.ok(errors['/private'] instanceof DeniedError);
        assert.ok(errors['/trap'] instanceof DeniedError);
        assert.match(errors['/trap'].message, /Disallow: \/private/);
        assert.equal(stats.requestsFailed, 3);
    });
}

test('what a page needs must be allowed, also after redirects, and images are left out', { skip }, async (t) => {
    const pages = {
        '/': html(`<link rel="stylesheet" href="/style.css"><script src="/script.js"></script><script src="/private/script.js"></script>
            <script src="/moved.js"></script><script src="/trap.js"></script><img src="/image.png"><video src="/video.mp4" preload="auto"></video>
            <iframe src="/frame"></iframe><iframe src="/frame/trap"></iframe><iframe src="/private/frame"></iframe>
            <script>new EventSource('/events'); fetch('/data').then(() => fetch('/private/data')).catch(() => fetch('/last'));</script>`),
        '/script.js': as('text/javascript', 'window.ran = (window.ran ?? 0) + 1'),
        '/moved.js': redirect('/script.js'),
        '/trap.js': redirect('/private/trap.js'),
        '/frame': redirect('/frame/moved'),
        '/frame/trap': redirect('/private/frame'),
        '/image.png': as('image/png', 'x'),
    };
    const site = await Site.start(t, 'User-agent: *\nDisallow: /private\n', pages);
    const service = await Service.start(t);
    let ran;
    const options = {
        async requestHandler({ page }) {
            await until(() => ['/last', '/frame/moved', '/frame/trap'].every((path) => site.paths().includes(path)));
            await sleep(500);
            ran = await page.evaluate('window.ran');
        },
    };
    const needed = ['/', '/data', '/frame', '/frame/moved', '/frame/trap', '/last', '/moved.js', '/script.js', '/script.js', '/style.css', '/trap.js'];
    let { crawler, errors } = browser(service, options);
    await crawler.run([`${site.url}/`]);
    assert.deepEqual(errors, {});
    assert.equal(ran, 2);
    assert.deepEqual(site.paths().sort(), needed);
    assert.ok(site.log.slice(1).every(({ headers }) => headers['user-agent'] === AGENT));

    site.log.length = 0;
    ({ crawler, errors } = browser(service, options, { images: true }));
    await crawler.run([`${site.url}/`]);
    assert.deepEqual(site.paths().sort(), [...needed, '/image.png'].sort());
});

test('a page that a handler leads on takes turns', { skip }, async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.5\nDisallow: /private\n', {
        '/': html('<a id="moved" href="/moved">moved</a> <a id="private" href="/private">private</a> <a id="open" target="_blank" href="/popup">popup</a>'),
        '/moved': redirect('/next'),
        '/popup': redirect('/private/popup'),
    });
    const service = await Service.start(t);
    let found;
    const { crawler, errors } = browser(service, {
        async requestHandler({ page }) {
            await page.click('#open');
            await until(() => site.paths().includes('/popup'));
            await page.click('#moved');
            await page.waitForURL('**/next');
            await page.goto(`${site.url}/moved`);
            await assert.rejects(page.goto(`${site.url}/private`), DeniedError);
            found = page.url();
            await page.goto(`${site.url}/`);
            const start = performance.now();
            await page.goto(`${site.url}/#part`); // no request
            await page.goto(`${site.url}/`);
            assert.ok(performance.now() - start < 30_000, 'the turn of the part was not given back');
            await page.click('#private');
            await sleep(500);
        },
    });
    await crawler.run([`${site.url}/`]);
    assert.deepEqual(errors, {});
    assert.equal(found, `${site.url}/next`);
    assert.deepEqual(site.paths(), ['/', '/popup', '/moved', '/next', '/moved', '/next', '/', '/']);
    site.assertGaps(500);
});

test('other methods than GET, and routes of the program, take turns', { skip }, async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.5\nDisallow: /private\n', {
        '/form': (response, request) => (request.method === 'POST' ? redirect('/done', 303) : redirect('/private'))(response),
        '/trap': redirect('/private/trap'),
        '/repeat': redirect('/private/repeat', 307),
        '/echo': (response, request) => request.on('data', (data) => bodies.push(`${request.method} ${data} ${request.headers['x-test']}`)).on('end', () => response.end('<script src="/private/script.js"></script>')),
    });
    const bodies = [];
    const service = await Service.start(t);
    const seen = [];
    const { crawler, errors } = browser(service, {
        preNavigationHooks: [
            async ({ page }) => {
                const handler = (route) => route.continue();
                await page.route('**/*', handler);
                await page.context().route('**/*', handler);
                await page.unroute('**/*', handler);
            },
            ({ page }) => page.route('**/*', (route) => route.continue({ headers: { ...route.request().headers(), 'x-test': '1' } })),
        ],
        requestHandler: ({ request }) => void seen.push(new URL(request.loadedUrl).pathname),
    });
    const post = (path, payload) => ({ url: site.url + path, method: 'POST', payload, uniqueKey: path });
    await crawler.run([post('/form', 'a=1'), post('/echo', 'b=2'), post('/trap'), post('/repeat', 'c=3'), `${site.url}/get`]);
    assert.deepEqual(seen.sort(), ['/done', '/echo', '/get']);
    assert.deepEqual(bodies, ['POST b=2 1']);
    assert.deepEqual(Object.keys(errors).sort(), ['/repeat', '/trap']);
    assert.deepEqual(site.paths().sort(), ['/done', '/echo', '/form', '/get', '/repeat', '/trap']);
    assert.deepEqual(site.log.filter(({ path }) => path === '/get' || path === '/done').map(({ method }) => method), ['GET', 'GET']);
    site.assertGaps(500);
});

test('timeouts do not end the wait of a browser for a turn', { skip }, async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 4\n', { '/hangs': () => {} });
    const service = await Service.start(t);
    const { crawler, errors } = browser(service, { navigationTimeoutSecs: 3, requestHandlerTimeoutSecs: 3, minConcurrency: 4 });
    const stats = await crawler.run(['/a', '/b', '/c', '/hangs'].map((path) => site.url + path));
    assert.deepEqual(Object.keys(errors), ['/hangs']);
    assert.equal(stats.requestsFinished, 3);
    assert.deepEqual(site.paths().sort(), ['/a', '/b', '/c', '/hangs']);
    site.assertGaps(4000);
});

test('AdaptivePlaywrightCrawler takes turns with and without its browser', { skip }, async (t) => {
    const site = await Site.start(t, 'User-agent: *\nCrawl-delay: 0.3\nDisallow: /private\n', { '/2': redirect('/trap'), '/trap': redirect('/private/trap') });
    const service = await Service.start(t);
    const { crawler, errors } = browser(service, {
        renderingTypeDetectionRatio: 0.5,
        async requestHandler({ querySelector, pushData }) {
            await pushData({ title: (await querySelector('title')).text() });
        },
    }, {}, AdaptivePlaywrightCrawler);
    await crawler.run(['/1', '/2', '/3', '/4', '/5', '/6', '/private'].map((path) => site.url + path));
    assert.deepEqual(Object.keys(errors).sort(), ['/2', '/private']);
    assert.deepEqual([...new Set(site.paths())].sort(), ['/1', '/2', '/3', '/4', '/5', '/6', '/trap']);
    assert.ok(site.paths().length > 7, 'no page was requested both ways');
    site.assertGaps(300);
});

test('other crawlers with a browser are refused', () => {
    const crawler = Object.create(PuppeteerCrawler.prototype, { browserPool: { value: {} } });
    assert.throws(() => polite(crawler, { agent: AGENT }), /PuppeteerCrawler is not supported/);
});
