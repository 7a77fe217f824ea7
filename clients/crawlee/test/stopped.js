// A crawl that a test stops with SIGINT: node stopped.js SERVICE URL... It prints what has become of its pages.
import { CheerioCrawler } from 'crawlee';
import { polite } from '../polite.js';
import { AGENT } from './kit.js';

const [service, ...urls] = process.argv.slice(2);
const crawler = polite(new CheerioCrawler({ requestHandler() {} }), { agent: AGENT, service });
const stats = await crawler.run(urls);
process.on('exit', () => console.log(JSON.stringify({ finished: stats.requestsFinished, waiting: waiting.length, retries: Math.max(0, ...waiting.map((r) => r.retryCount)) })));
const queue = await crawler.getRequestQueue();
const requests = await Promise.all((await queue.client.listHead({ limit: 100 })).items.map(({ id }) => queue.client.getRequest(id)));
const waiting = requests.filter((request) => !request.handledAt);
