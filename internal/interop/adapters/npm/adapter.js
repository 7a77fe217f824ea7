// Answers the cases of the conformance suite with robots-parser of npm.
const parse = require('robots-parser');

require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const q = JSON.parse(line);
  const body = 'robots' in q ? q.robots : Buffer.from(q.robots_base64, 'base64').toString();
  const robots = parse(new URL('/robots.txt', q.url).href, body);
  const answer = {
    allowed: robots.isAllowed(q.url, q.agent) !== false, // undefined: the URL is not of this site
    delay: robots.getCrawlDelay(q.agent) || 0,
    sitemaps: robots.getSitemaps(),
    line: Math.max(robots.getMatchingLineNumber(q.url, q.agent), 0), // -1: no rule matches
  };
  console.log(JSON.stringify(answer));
});
