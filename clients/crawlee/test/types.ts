// What the types of the package must accept, and what they must not.
import { CheerioCrawler, PlaywrightCrawler } from 'crawlee';
import { DeniedError, StoppedError, polite } from '../polite.js';

const agent = 'ExampleBot/1.0';
const cheerio: CheerioCrawler = polite(new CheerioCrawler(), { agent, service: 'unix:/run/collyrobots.sock', token: 'x', purpose: ['search', 'ai-use'] });
const browser: PlaywrightCrawler = polite(new PlaywrightCrawler(), { agent, images: true, purpose: 'train-ai' });

export const reason = (error: Error): unknown => (error instanceof DeniedError ? [error.url, error.decision?.reason] : error instanceof StoppedError);

// @ts-expect-error agent is missing
polite(cheerio, {});
// @ts-expect-error 3 is no crawler
polite(3, { agent });
// @ts-expect-error there is no such purpose
polite(browser, { agent, purpose: 'fun' });
// @ts-expect-error there is no such option
polite(browser, { agent, delay: 3 });
