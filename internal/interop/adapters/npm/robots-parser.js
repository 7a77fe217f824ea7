// Answers the cases of the conformance suite with robots-parser of npm.
const parse = require('robots-parser');

require('./serve').serve((q) => {
  const robots = parse(new URL('/robots.txt', q.url).href, q.body);
  return {
    allowed: robots.isAllowed(q.url, q.agent) !== false, // undefined: the URL is not of this site
    delay: robots.getCrawlDelay(q.agent) || 0,
    sitemaps: robots.getSitemaps(),
    line: Math.max(robots.getMatchingLineNumber(q.url, q.agent), 0), // -1: no rule matches
  };
});
