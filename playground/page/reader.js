// This file runs the WebAssembly in workers, so that the page never waits for it.

const files = new URL(".", import.meta.url).href;

// compile loads the WebAssembly. It is compressed, because not every web server compresses files.
export async function compile() {
  const response = await fetch(files + "collyrobots.wasm.gz");
  if (!response.ok) throw new Error(`collyrobots.wasm.gz: status ${response.status}`);
  const code = response.body.pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compileStreaming(new Response(code, { headers: { "Content-Type": "application/wasm" } }));
}

// A Reader has the answers of one worker about the URLs of the latest question.
export class Reader {
  // dialects are the dialects that the worker decides in. changed is called after each answer.
  constructor(dialects, lint, changed) {
    this.version = 0; // of the text and the name that the answers belong to
    this.forget();
    this.sent = { dialects, lint };
    this.changed = changed;
    // A worker with a blob URL has the content security policy of the page.
    const source = new Blob([`importScripts(${JSON.stringify(files + "worker.js")});`], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(source));
    this.worker.onmessage = ({ data }) => this.#take(data);
    this.worker.onerror = event => this.#take({ failed: event.message });
    this.worker.postMessage(this.sent);
  }

  // forget removes the answers.
  forget() {
    this.groups = [];
    this.rows = new Map(); // by URL
    this.findings = undefined; // until the worker has looked for faults
  }

  start(module) { this.worker.postMessage({ module, files }); }

  // ask asks about URLs. version is that of the text, which is a Uint8Array, and of the name.
  ask({ text, name, urls, version }) {
    const message = { urls: version === this.version ? urls.filter(url => !this.rows.has(url)) : urls, version };
    if (name !== this.sent.name) message.name = name;
    if (text !== this.sent.text) message.text = text;
    if (version === this.sent.version && message.urls.length === 0) return;
    Object.assign(this.sent, { text, name, version });
    this.worker.postMessage(message);
  }

  #take({ version, urls, answer, failed }) {
    if (failed) {
      this.failed = failed;
      this.changed();
      return;
    }
    if (version !== this.version) this.rows = new Map();
    this.version = version;
    this.tdmrep = answer.tdmrep;
    this.token = answer.token;
    this.groups = answer.groups;
    urls.forEach((url, i) => this.rows.set(url, answer.urls[i]));
    this.findings = answer.findings ?? this.findings;
    this.changed();
  }
}
