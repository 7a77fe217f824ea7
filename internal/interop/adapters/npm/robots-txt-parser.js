// Answers the cases of the conformance suite with robots-txt-parser of npm.
const parser = require('robots-txt-parser');

require('./serve').serve(async (q) => {
  const robots = parser({ userAgent: q.agent });
  robots.parseRobots(q.url, q.body);
  return {
    allowed: robots.canCrawlSync(q.url),
    delay: (await robots.getCrawlDelay()) || 0,
    sitemaps: await robots.getSitemaps(),
  };
});
