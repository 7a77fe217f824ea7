// Reads the questions of the conformance suite from standard input and writes the answers of a function.
exports.serve = async (answer) => {
  for await (const line of require('readline').createInterface({ input: process.stdin })) {
    const q = JSON.parse(line);
    q.body = 'robots' in q ? q.robots : Buffer.from(q.robots_base64 || '', 'base64').toString();
    q.path = q.url && q.url.replace(/^\w+:\/\/[^/?#]*/, '').replace(/#.*/, '').replace(/^(?!\/)/, '/');
    let reply;
    try {
      reply = await answer(q);
    } catch (fault) {
      reply = { error: String(fault) };
    }
    console.log(JSON.stringify(reply));
  }
};
