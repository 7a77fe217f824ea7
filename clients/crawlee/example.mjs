// Visits the pages of a site, and keeps the title of each: node example.mjs URL
import { CheerioCrawler, Dataset } from 'crawlee';
import { polite } from './polite.js'; // in your project: from 'collyrobots-crawlee'

const crawler = new CheerioCrawler({
    maxRequestsPerCrawl: 50,
    async requestHandler({ request, $, enqueueLinks, log }) {
        const title = $('title').text();
        log.info(`${title}: ${request.loadedUrl}`);
        await Dataset.pushData({ url: request.loadedUrl, title });
        await enqueueLinks();
    },
});
polite(crawler, { agent: 'ExampleBot/1.0 (+https://example.com/bot)' });

await crawler.run([process.argv[2]]);
