// Answers the cases of the conformance suite with robots-txt-parse and robots-txt-guard of npm.
const { Readable } = require('stream');
const guard = require('robots-txt-guard');
const parse = require('robots-txt-parse');

require('./serve').serve(async (q) => {
  const file = await parse(Readable.from([Buffer.from(q.body)]));
  return {
    allowed: guard(file).isAllowed(q.agent, q.path),
    sitemaps: file.extensions.filter((x) => x.extension.toLowerCase() === 'sitemap').map((x) => x.value),
  };
});
