// Runs the fetch cases of the conformance suite with Crawlee of npm.
const { CheerioCrawler, Configuration, log } = require('@crawlee/cheerio');

log.setLevel(log.LEVELS.OFF);

require('./serve').serve(async (q) => {
  const settings = new Configuration({ persistStorage: false, purgeOnStart: false, availableMemoryRatio: 0.5 });
  const crawler = new CheerioCrawler({
    respectRobotsTxtFile: { userAgent: q.agent },
    additionalMimeTypes: ['text/plain'],
    maxConcurrency: 1,
    maxRequestRetries: 0,
    requestHandlerTimeoutSecs: 10,
    requestHandler: async () => {}, // the log of the server says what was requested
  }, settings);
  await crawler.run(q.fetch);
  return {};
});
