// Fetches pages when collyrobots serve allows it: node polite.mjs URL...
const service = process.env.COLLYROBOTS ?? "http://127.0.0.1:8094";
const agent = "ExampleBot/1.0 (+https://example.com/bot)";
const sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

// ask sends body to the service up to six times, and returns the status and the object of the response.
async function ask(path, body) {
  let reply, pause;
  for (let attempt = 0; attempt < 6; attempt++) {
    try {
      const r = await fetch(service + path, { method: "POST", body: JSON.stringify(body) });
      reply = { status: r.status, ...JSON.parse((await r.text()) || "{}") };
      pause = r.headers.get("Retry-After");
    } catch (e) {
      reply = { status: 503, error: "no response of the service: " + (e.cause ?? e) };
      pause = 2 ** attempt;
    }
    if ((reply.status !== 429 && reply.status !== 503) || attempt === 5) break;
    console.error(`${body.url ?? path}: ${reply.error}; next attempt in ${pause} s`);
    await sleep(pause);
  }
  return reply;
}

// get returns the response with a page, when it is its turn. A redirect needs a turn of its own.
async function get(url) {
  const turn = await ask("/v1/turns", { url, agent, wait: 240 });
  if (turn.status !== 201) throw new Error(turn.error);
  const answer = {};
  try {
    const r = await fetch(url, { headers: { "User-Agent": agent }, redirect: "manual", signal: AbortSignal.timeout(30_000) });
    Object.assign(answer, { status: r.status, headers: Object.fromEntries(r.headers) });
    return { status: r.status, headers: r.headers, body: await r.text() };
  } catch (e) {
    answer.error = String(e.cause ?? e);
    throw e;
  } finally {
    const reply = await ask("/v1/turns/" + turn.turn, answer);
    if (reply.status !== 200 && reply.status !== 204) console.error(`${url}: the answer was not taken: ${reply.error}`);
  }
}

for (const url of process.argv.slice(2)) {
  await get(url).then((page) => console.log(page.status, url), (e) => console.log(url, e.message));
}
