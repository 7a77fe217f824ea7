// This file is a worker that answers questions about a robots.txt with the WebAssembly.
// It takes messages with new values of the fields of input. While it works on a question, a newer
// message replaces that question.

const input = { text: new Uint8Array(), name: "", urls: [], dialects: [], lint: false, version: 0 };
let asked = 0, working = false, linted;

// begin starts the WebAssembly. files is the folder of the page.
async function begin(files, module) {
  importScripts(files + "wasm_exec.js");
  const go = new Go();
  const instance = await WebAssembly.instantiate(module, go.importObject);
  go.run(instance); // runs until the worker ends, and has defined readRobots when it returns
  work();
}

onmessage = ({ data }) => {
  if (data.module) {
    begin(data.files, data.module).catch(fail);
    return;
  }
  Object.assign(input, data);
  asked++;
  work();
};

const fail = error => postMessage({ failed: String(error) });

// work answers questions until the latest one is answered.
async function work() {
  if (working || !self.readRobots) return;
  working = true;
  for (let answered = -1; answered !== asked; ) {
    answered = asked;
    await answer().catch(fail);
  }
  working = false;
}

// answer answers the latest question. The URLs are answered in slices that take about 20 ms. It
// returns early if there is a newer question.
async function answer() {
  const mine = asked;
  let size = 16, from = 0;
  do {
    await pause();
    if (mine !== asked) return;
    const begin = performance.now();
    send(input.urls.slice(from, from + size), false);
    from += size;
    size = performance.now() - begin < 20 ? 2 * size : Math.max(1, size >> 1);
  } while (from < input.urls.length);
  if (!input.lint || linted === input.version) return;
  await pause();
  if (mine !== asked) return;
  send([], true);
  linted = input.version;
}

// send sends the answer about some URLs to the page.
function send(urls, lint) {
  const answer = readRobots(input.text, { name: input.name, urls, dialects: input.dialects, lint });
  if (answer instanceof Error) throw answer;
  postMessage({ version: input.version, urls, answer });
}

// pause lets the worker receive messages. A timer would wait for 4 ms or longer.
const channel = new MessageChannel();
function pause() {
  return new Promise(resolve => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
}
