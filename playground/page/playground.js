// This is the page. It connects the fields with the workers.
import { byId, make, many, number, plain, set } from "./dom.js";
import { setLines, setMarks, show } from "./editor.js";
import { examples } from "./examples.js";
import { compile, Reader } from "./reader.js";
import { faultsOf, findings, marksOf, matrix, names, readings, usage, verdict } from "./results.js";
import { decode, encode } from "./share.js";

const dialects = Object.keys(names);
const maxURLs = 10_000; // the lines of the list that count
const maxFile = 2_000_000; // bytes of a file that are read
const maxLink = 1_000_000; // characters of a link
const step = 50; // rows that are shown at once

// The input. bytes is the text of the file: that of the field in UTF-8, or that of a file which was
// opened and not changed since.
// version is that of the file and the name, and textVersion that of the file.
let bytes = new Uint8Array(), urls = [], selected = "", version = 1, textVersion = 1;
let shownURLs = step, shownFindings = step;

// The decisions of all dialects except temoto are quick. Temoto and the search for faults may take
// seconds for a large file, so other workers do this after a pause.
const quick = new Reader(dialects.filter(d => d !== "temoto"), false, changed);
const slow = new Reader(["temoto"], false, changed);
const linter = new Reader(dialects, true, changed);
const readers = [quick, slow, linter];

const text = byId("text"), name = byId("name"), list = byId("urls");

// ask asks the workers about the input.
let later;
function ask() {
  const question = { text: bytes, name: name.value, urls, version };
  quick.ask(question);
  clearTimeout(later);
  later = setTimeout(() => {
    slow.ask(question);
    linter.ask({ text: bytes, name: "", urls: [], version: textVersion });
  }, 200);
}

// textChanged is called after the user has changed the file.
function textChanged() {
  bytes = new TextEncoder().encode(text.value);
  fileChanged();
}

function fileChanged() {
  version++;
  textVersion++;
  const lines = setLines(text.value) - (/(^|\n)$/.test(text.value) ? 1 : 0);
  set(byId("size"), `${many(lines, "line")}, ${many(bytes.length, "byte")}`);
  ask();
}

function nameChanged() {
  version++;
  ask();
}

// readURLs reads the list of URLs. The selected one is that of the line with the caret.
function readURLs() {
  const lines = list.value.split("\n").slice(0, maxURLs).map(line => line.trim());
  urls = [...new Set(lines.filter(line => line))];
  const atCaret = caretURL();
  if (atCaret) selected = atCaret;
  if (!urls.includes(selected)) selected = urls[0] ?? "";
}

function urlsChanged() {
  readURLs();
  ask();
  changed();
}

// caretURL returns the URL in the line with the caret.
function caretURL() {
  const begin = list.value.lastIndexOf("\n", list.selectionStart - 1) + 1;
  const end = list.value.indexOf("\n", list.selectionStart);
  const line = list.value.slice(begin, end < 0 ? undefined : end).trim();
  return urls.includes(line) ? line : "";
}

// select shows the details of a URL and scrolls to the line that decided.
function select(url) {
  selected = url;
  render();
  const lines = [...marksOf(rowOf(url), dialects, groupsOf()).entries()].filter(([, mark]) => mark.kind !== "other").map(([line]) => line);
  if (lines.length > 0) show(Math.min(...lines));
}

// rowOf combines the answers about a URL: error, readings by dialect, usage, the dialects whose
// reading is of an earlier input, and whether the dialects differ.
function rowOf(url) {
  const row = { readings: new Map(), stale: new Set(), error: quick.rows.get(url)?.error, usage: quick.rows.get(url)?.usage };
  for (const reader of [quick, slow]) {
    for (const reading of reader.rows.get(url)?.readings ?? []) {
      row.readings.set(reading.dialect, reading);
      if (reader.version !== version) row.stale.add(reading.dialect);
    }
  }
  const verdicts = new Set([...row.readings.values()].map(reading => reading.allowed));
  row.differ = verdicts.size > 1;
  return row;
}

const groupsOf = () => new Map([...quick.groups, ...slow.groups].map(group => [group.dialect, group]));

// changed shows the answers before the next frame.
let rendering = false;
function changed() {
  if (rendering) return;
  rendering = true;
  requestAnimationFrame(() => {
    rendering = false;
    render();
  });
}

// noCode says why nothing can be decided. why continues a sentence.
let stopped = false;
function noCode(why) {
  stopped = true;
  set(byId("code"), `The code that reads the file ${why}. Reload the page.`);
}

function render() {
  const failed = readers.find(reader => reader.failed)?.failed;
  if (failed) noCode(`has stopped: ${failed}`);
  const ready = quick.version > 0 && !stopped, asked = ready && !quick.tdmrep ? dialects : [];
  const row = selected ? rowOf(selected) : undefined, groups = groupsOf();
  set(byId("token"), tokenNote());
  byId("code").hidden = ready;
  byId("matrix").hidden = urls.length === 0 || asked.length === 0;
  matrix(urls, rowOf, asked, selected, shownURLs, url => select(url));
  summary(asked);
  set(byId("selected"), plain(selected));
  byId("selected").hidden = !selected;
  verdict(row, asked);
  readings(row, asked, groups);
  usage(row, quick.tdmrep);
  findings(linter.findings, shownFindings);
  byId("findings").classList.toggle("stale", linter.version !== textVersion);
  more("more-findings", linter.findings?.length ?? 0, shownFindings);
  more("more-urls", urls.length, shownURLs);
  setMarks(marksOf(row, asked, groups), faultsOf(linter.findings));
}

// tokenNote says which name the dialects look for, if it is not the one in the field.
function tokenNote() {
  const header = name.value.trim();
  if (quick.version !== version || quick.token === header) return "";
  if (!quick.token) return "This header names no crawler, so the group of * applies.";
  return `The dialects look for ${plain(quick.token, 100)}, and Colly for the whole header.`;
}

// summary shows how many URLs are in the list, and for how many of them the dialects differ.
function summary(asked) {
  let differ = 0, known = 0;
  for (const url of urls) {
    const row = rowOf(url);
    if (row.error || row.readings.size === asked.length) known++;
    if (row.differ) differ++;
  }
  const parts = [many(urls.length, "URL")];
  if (asked.length > 0 && known < urls.length) parts.push(`${number(known)} decided`);
  if (differ > 0) parts.push(`the dialects differ about ${number(differ)}`);
  set(byId("urls-count"), urls.length ? parts.join(", ") : "");
}

function more(id, count, shown) {
  byId(id).hidden = count <= shown;
  set(byId(id), `Show more of ${number(count)}`);
}

// put replaces the whole input. input.text is a Uint8Array.
function put(input) {
  bytes = input.text;
  text.value = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  text.scrollTop = 0;
  text.setSelectionRange(0, 0);
  name.value = input.name;
  list.value = input.urls;
  list.setSelectionRange(0, 0);
  selected = "";
  shownURLs = shownFindings = step;
  for (const reader of readers) reader.forget();
  readURLs();
  fileChanged();
  render();
}

// edited removes an earlier input from the address, so that the address never shows another input
// than the page.
function edited() {
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  set(byId("status"), "");
}

async function openFile(file) {
  const content = new Uint8Array(await file.slice(0, maxFile).arrayBuffer());
  put({ text: content, name: name.value, urls: list.value });
  edited();
  set(byId("status"), `${plain(file.name)} is open.${file.size > maxFile ? ` Only its first ${number(maxFile)} bytes were read.` : ""}`);
}

async function copyLink() {
  const fragment = await encode({ text: bytes, name: name.value, urls: list.value });
  if (fragment.length > maxLink) return set(byId("status"), "The input is too large for a link.");
  history.replaceState(null, "", fragment);
  const length = location.href.length;
  let where = "The link is in the address bar and in the clipboard.";
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    where = "The link is in the address bar.";
  }
  set(byId("status"), where + (length > 8000 ? ` It has ${number(length)} characters, so some programs may cut it.` : " It holds the file, the name and the URLs."));
}

// fromAddress shows the input in the address, and reports whether there is one.
async function fromAddress() {
  const input = await decode(location.hash);
  if (input) put(input);
  else if (location.hash.startsWith("#1")) set(byId("status"), "The link is damaged or incomplete.");
  return input !== undefined;
}

text.addEventListener("input", () => { edited(); textChanged(); });
name.addEventListener("input", () => { edited(); nameChanged(); });
list.addEventListener("input", () => { edited(); urlsChanged(); });
for (const event of ["keyup", "click"]) {
  list.addEventListener(event, () => {
    const url = caretURL();
    if (url && url !== selected) select(url);
  });
}
byId("link").addEventListener("click", copyLink);
byId("open").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", () => {
  const [file] = byId("file").files;
  if (file) openFile(file);
  byId("file").value = "";
});
byId("editor").addEventListener("dragover", event => event.preventDefault());
byId("editor").addEventListener("drop", event => {
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  openFile(file);
});
byId("more-urls").addEventListener("click", () => { shownURLs += 4 * step; render(); });
byId("more-findings").addEventListener("click", () => { shownFindings += 4 * step; render(); });
addEventListener("hashchange", fromAddress);

byId("examples").replaceChildren(...examples.map(example => {
  const button = make("button", "", example.title);
  button.type = "button";
  button.addEventListener("click", () => {
    put({ ...example, text: new TextEncoder().encode(example.text) });
    edited();
  });
  return button;
}));

if (!await fromAddress()) put({ ...examples[0], text: new TextEncoder().encode(examples[0].text) });
try {
  const module = await compile();
  for (const reader of readers) reader.start(module);
} catch (error) {
  noCode(`cannot be loaded: ${error.message}`);
  render();
}
