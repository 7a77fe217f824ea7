// Fetches pages when collyrobots serve allows it: node polite.mjs URL...
const service = process.env.COLLYROBOTS ?? "http://127.0.0.1:8094";
const agent = "ExampleBot/1.0 (+https://example.com/bot)";
const sleep = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

// ask sends body to the service, and returns the status and the object of the response.
async function ask(path, body) {
  for (;;) {
    try {
      const r = await fetch(service + path, { method: "POST", body: JSON.stringify(body) });
      if (r.status !== 429 && r.status !== 503) return { status: r.status, ...JSON.parse((await r.text()) || "{}") };
      await sleep(r.headers.get("Retry-After"));
    } catch (e) {
      console.error("waiting for the service:", e.message);
      await sleep(1);
    }
  }
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
    await ask("/v1/turns/" + turn.turn, answer);
  }
}

for (const url of process.argv.slice(2)) {
  await get(url).then((page) => console.log(page.status, url), (e) => console.log(url, e.message));
}
