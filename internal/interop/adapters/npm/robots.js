// Answers the cases of the conformance suite with the package robots of npm.
const { RobotsParser } = require('robots');

require('./serve').serve((q) => {
  const robots = new RobotsParser();
  robots.parse(q.body.split(/\r\n|\r|\n/)); // as in RobotsParser.read
  return { allowed: robots.canFetchSync(q.agent, q.path), delay: Number(robots.getCrawlDelay(q.agent)) || 0, sitemaps: robots.sitemaps };
});
