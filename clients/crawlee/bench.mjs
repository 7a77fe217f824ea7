// Measures Crawlee alone and with turns, in one run: node bench.mjs [REQUESTS]. COLLYROBOTS names the service, which must run with
// -allow-private -delay 0s. Each client visits a site of its own on this machine. Crawls with and without turns alternate, and the best
// of seven counts, because other programs can only make a crawl slower.
import { once } from 'node:events';
import http from 'node:http';
import { BasicCrawler, Configuration, log } from 'crawlee';
import { polite } from './polite.js';

log.setLevel(log.LEVELS.OFF);
const requests = Number(process.argv[2] ?? 1000);
const sites = await Promise.all(Array.from({ length: 64 }, site));
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

// site starts a site, and returns its URL.
async function site() {
    const server = http.createServer((request, response) => response.end(request.url === '/robots.txt' ? '' : 'page'));
    server.listen(0, '127.0.0.1').unref();
    await once(server, 'listening');
    return `http://127.0.0.1:${server.address().port}`;
}

// crawl sends all requests with a number of clients, and returns the requests per second and the median time of a request
// in milliseconds. Each client is a page whose handler sends its requests one after the other.
async function crawl(clients, withTurns) {
    const times = [];
    let begin;
    let end;
    const before = process.cpuUsage();
    const crawler = new BasicCrawler({
        minConcurrency: clients,
        requestHandlerTimeoutSecs: 600,
        async requestHandler({ request, sendRequest }) {
            for (let i = 0; i < requests / clients; i++) {
                const start = performance.now();
                begin ??= start;
                await sendRequest({ url: `${request.url}/${i}`, useHeaderGenerator: false });
                end = performance.now();
                times.push(end - start);
            }
        },
    }, new Configuration({ persistStorage: false }));
    if (withTurns) polite(crawler, { agent: 'Bench/1.0' });
    await crawler.run(sites.slice(0, clients));
    if (crawler.stats.state.requestsFailed) throw new Error('a page has failed');
    const { user, system } = process.cpuUsage(before); // with the sites, which are in this process
    return { perSecond: (1000 * times.length) / (end - begin), time: median(times), processor: (user + system) / 1000 / times.length };
}

const title = ['clients', 'requests per second', 'median time of a request', 'processor time of a request'];
console.log(`| ${title.join(' | ')} |\n|---|---|---|---|`);
await crawl(64, true); // the service reads the robots.txt files
for (const clients of [1, 8, 64]) {
    const runs = { alone: [], polite: [] };
    for (let round = 0; round < 7; round++) {
        runs.alone.push(await crawl(clients, false));
        runs.polite.push(await crawl(clients, true));
    }
    const cell = (value, unit, digits, best = Math.min) => {
        const [alone, polite] = [runs.alone, runs.polite].map((of) => best(...of.map((run) => run[value])).toFixed(digits));
        return `${alone}${unit} alone, ${polite}${unit} with turns`;
    };
    console.log(`| ${clients} | ${cell('perSecond', '', 0, Math.max)} | ${cell('time', ' ms', 2)} | ${cell('processor', ' ms', 2)} |`);
}
