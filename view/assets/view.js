// This file receives the stream of messages and updates all parts of the page.
import { ago, byId, classes, many, number, parts, plain, set, short, statusText, times, whole, why, ms } from "./text.js";
import { reasons } from "./reasons.js";
import * as chart from "./chart.js";
import * as hosts from "./hosts.js";
import * as lists from "./lists.js";
import * as robots from "./robots.js";
import * as drawer from "./drawer.js";
import * as pause from "./pause.js";

const question = asked();
let stream, last, received = 0, silence;

// asked returns the question in the URL of the page.
function asked() {
  const values = new URLSearchParams(location.search);
  return { q: values.get("q") || "", sort: values.get("sort") || "left", n: Math.min(+values.get("n") || 50, 200) };
}

// remember writes the question and the open host into the URL of the page, so that a reload or a
// bookmark shows the same.
function remember() {
  const values = new URLSearchParams();
  if (question.q) values.set("q", question.q);
  if (question.sort !== "left") values.set("sort", question.sort);
  if (question.n !== 50) values.set("n", question.n);
  if (drawer.host()) values.set("host", drawer.host());
  const text = values.toString();
  history.replaceState(null, "", text ? "?" + text : location.pathname);
}

// clock returns the time of the machine on which the crawl runs, or the time at which it ended.
let ahead = 0;
const clock = () => last?.closed_at ? Date.parse(last.closed_at) : Date.now() + ahead;

// listen opens the stream for the current question.
function listen() {
  stream?.close();
  stream = new EventSource("events?" + new URLSearchParams(question));
  stream.onmessage = e => show(JSON.parse(e.data));
  stream.onerror = () => alive();
}

// show shows a message.
function show(m) {
  ahead = Date.parse(m.time) - Date.now();
  received = performance.now();
  last = m;
  byId("app").hidden = false;
  headline(m);
  pause.allow(m.can_pause && !m.closed);
  hosts.show(m, question, clock());
  if (m.denials) lists.denials(m.denials, m.denied_rules || [], question.q ? undefined : Object.values(m.denied_by || {}).reduce((n, more) => n + more, 0), robots.open);
  if (m.failed_reasons) lists.failures(m.failed_reasons, m.totals.failed || 0);
  drawer.show();
  if (m.closed) freeze();
  if (m.sitemaps) lists.sitemaps(m.sitemaps, clock());
  robots.first(m);
  alive();
}

// freeze ends the stream a little after the crawl has ended, when the last events have arrived.
let frozen;
function freeze() {
  frozen ??= setTimeout(() => { stream.close(); alive(); }, 5000);
}

// alive shows whether messages arrive.
function alive() {
  const live = byId("live"), ok = received && performance.now() - received < 5000 && stream.readyState === EventSource.OPEN;
  live.classList.toggle("off", !ok);
  const waiting = last?.totals.waiting > 0 || last?.rate > 0 || last?.frontier?.waiting > 0;
  if (last?.closed) {
    live.classList.remove("off");
    return set(live, "ended");
  }
  set(live, !last ? "connecting" : !ok && performance.now() - received > 3000 ? "disconnected, showing the last state received" : waiting ? "running" : "no page is waiting");
  clearTimeout(silence);
  silence = setTimeout(alive, 3500);
}

// headline updates the cards.
function headline(m) {
  set(byId("done"), number(m.totals.pages));
  const t = m.totals, open = (t.waiting || 0) + (t.on_disk || 0);
  parts(byId("pages-bar"), [["fed", t.pages, "done"], ["resumed", t.unchanged || 0, "unchanged"], ["rest", open, "waiting"]]);
  failed(m);
  spark(m.series);
  const unchanged = m.totals.unchanged ? ` · ${number(m.totals.unchanged)} unchanged` : "";
  set(byId("pages-why"), `${number(m.totals.waiting)} waiting${unchanged} · ${m.rate.toFixed(1)} requests per second`);
  const said = signals(m);
  byId("signals").hidden = !said;
  set(byId("signals"), said);
  frontier(m);
  const g = m.gap_over_delay;
  set(byId("gap"), g ? times(g) : "–");
  byId("gap").classList.toggle("bad", g > 0 && g < 1);
  set(byId("gap-why"), g ? (g < 1 ? "the delay of the host, which is too short" : "the delay of the host, so every request kept it") : "no two requests to a host with a delay yet");
  set(byId("denied"), number(m.totals.denied));
  const denied = Object.keys(reasons).filter(reason => m.denied_by?.[reason]).map(reason => `${number(m.denied_by[reason])} × ${reasons[reason]}`);
  set(byId("denied-why"), denied.join(", ") || (m.totals.denied ? "requests not sent" : "every request was allowed"));
}

// failed updates the card of the failures.
function failed(m) {
  const s = m.statuses;
  set(byId("failed"), number(m.totals.failed || 0));
  byId("failed").classList.toggle("bad", m.totals.failed > 0);
  parts(byId("statuses-bar"), classes.map(([key, name]) => [key === "throttled" || key === "none" ? key : "s" + key, s?.[key] || 0, name]));
  const now = m.throttled_rate && !m.closed ? ` · ${m.throttled_rate.toFixed(1)} × 429 or 503 per second now` : "";
  set(byId("failed-why"), (statusText(s) || "no response so far") + now);
}

// spark draws the number of requests, and of failures, over the whole crawl.
function spark(s) {
  const element = byId("spark");
  element.toggleAttribute("hidden", !s || s.starts.length < 2);
  if (!s || s.starts.length < 2) return;
  const most = Math.max(...s.starts, ...s.failures, 1);
  const line = values => "M" + values.map((n, i) => `${(i * 120 / (values.length - 1)).toFixed(1)} ${(23 - 22 * n / most).toFixed(1)}`).join("L");
  element.querySelector(".spark-starts").setAttribute("d", line(s.starts));
  element.querySelector(".spark-failures").setAttribute("d", s.failures.some(n => n) ? line(s.failures) : "");
  const text = `requests in the last ${short(s.starts.length * s.width * 1000)}, at most ${(most / s.width).toFixed(1)} per second; failures in red`;
  element.setAttribute("aria-label", text);
  let title = element.querySelector("title");
  if (!title) {
    title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    element.prepend(title);
  }
  set(title, text);
}

// signals describes the pages with robots tags, the uses that owners disallow, the licenses that
// sites ask for, and the requests that are signed.
function signals(m) {
  const parts = [], tags = m.robots_tags, s = m.signatures;
  if (tags?.noindex) parts.push(`${number(tags.noindex)} noindex`);
  if (tags?.nofollow) parts.push(`${number(tags.nofollow)} nofollow`);
  if (tags && !parts.length) parts.push(`${number(tags.pages)} with robots tags`);
  for (const [use, counts] of Object.entries(m.usage || {})) {
    if (counts.disallowed) parts.push(`${number(counts.disallowed)} disallow ${use}`);
  }
  if (m.license_required) parts.push(`${number(m.license_required)} ask for a license`);
  if (s) parts.push(`${many(s.signed, "request")} signed`);
  if (s?.hosts) parts.push(`${many(s.hosts, "site")} asked for signatures`);
  if (s?.failed) parts.push(`${number(s.failed)} sent without a signature`);
  return parts.join(" · ");
}

// frontier updates the card of the pages that wait in the urlstore.Store of the option Frontier.
function frontier(m) {
  const f = m.frontier;
  byId("frontier").hidden = !f;
  if (!f) return;
  set(byId("on-disk"), number(f.waiting));
  const parts = [`on ${many(f.hosts, "host")}`];
  if (f.growth) parts.push(`${f.growth > 0 ? "+" : "−"}${number(Math.round(Math.abs(f.growth)))} per minute`);
  if (f.oldest) parts.push(`the oldest was found ${ago(f.oldest, clock())}`);
  parts.push(`${number(f.done)} done`);
  for (const [name, text] of [["failed", "failed"], ["denied", "denied"], ["over_budget", "over the budget"], ["unrecorded", "not recorded"]]) {
    if (f[name]) parts.push(`${number(f[name])} ${text}`);
  }
  if (f.error) parts.push(plain(f.error));
  set(byId("frontier-why"), parts.join(", "));
  byId("frontier-why").classList.toggle("bad", Boolean(f.error));
}

// idle says that no page is waiting, and how the hosts have ended.
function idle(m) {
  const endings = [["done", "done"], ["budget", "over the budget"], ["throttled", "throttled for too long"], ["refused", "refusing"], ["canceled", "canceled"], ["closed", "closed"]];
  const ended = endings.filter(([name]) => m.ended?.[name]).map(([name, text]) => `${number(m.ended[name])} ${text}`);
  return ended.length ? `No page is waiting. Hosts: ${ended.join(", ")}.` : "No page is waiting.";
}

// ended shows when and why the crawl has ended, and what was left.
function ended(m) {
  const at = new Date(m.closed_at), took = at - Date.parse(m.started);
  set(byId("left-title"), "The crawl has ended");
  set(byId("left"), at.toLocaleTimeString("en-GB"));
  set(byId("left-until"), at.toLocaleDateString("en-GB", { dateStyle: "medium" }));
  byId("left-parts").hidden = false;
  set(byId("left-parts"), `It took ${short(took)}.`);
  set(byId("left-why"), reasonsOfEnd(m));
  set(byId("age"), `took ${short(took)}`);
}

// reasonsOfEnd says why the crawl has ended, and what was left.
function reasonsOfEnd(m) {
  const e = m.ended || {}, left = m.not_sent || {};
  const cut = (e.closed || 0) + (e.canceled || 0), why = [];
  if (e.canceled) why.push(`It was canceled while ${many(e.canceled, "host")} had pages.`);
  if (e.closed) why.push(`It was closed while ${many(e.closed, "host")} had pages.`);
  if (!cut && e.throttled) why.push(`Pages of ${many(e.throttled, "host")} were given up, because of status 429 or 503.`);
  else if (!cut) why.push(e.budget || e.refused ? "No page was waiting." : "All pages were done.");
  if (e.done) why.push(`${many(e.done, "host")} done.`);
  const parts = [];
  for (const [key, text] of [["canceled", "canceled"], ["closed", "waiting when it was closed"], ["budget", "over the budget"], ["refused", "of hosts that refuse"]]) {
    if (left[key]) parts.push(`${many(left[key], "page")} ${text}`);
  }
  if (m.frontier?.waiting) parts.push(`${many(m.frontier.waiting, "page")} in the frontier`);
  why.push(parts.length ? `Left: ${parts.join(", ")}.` : "No page was left.");
  return why.join(" ");
}

// estimates says when half of the waiting pages, and 90 % of them, have started.
function estimates(l, passed) {
  byId("left-parts").hidden = !l || l.waiting < 2 && !(l.half > 0);
  if (l) set(byId("left-parts"), `50 % of the waiting pages in ${whole(Math.max(0, ms(l.half) - passed))}, 90 % in ${whole(Math.max(0, ms(l.most) - passed))}`);
}

// tick updates what changes with time.
function tick() {
  if (!last) return;
  const now = clock(), passed = last.closed_at ? 0 : now - Date.parse(last.time), l = last.time_left;
  if (last.closed_at) {
    ended(last);
    return hosts.tick(now, passed);
  }
  estimates(l, passed);
  set(byId("left"), l ? whole(ms(l.duration) - passed) : "–");
  const end = l && new Date(Date.parse(last.time) + ms(l.duration));
  set(byId("left-until"), l && ms(l.duration) < 30 * 86400e3 ? `until ${end.toLocaleString("en-GB", ms(l.duration) < 43200e3 ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" })}` : "");
  set(byId("left-why"), l ? `${plain(l.host, 80)} takes longest: ${many(l.waiting, "page")}, ${ms(l.delay) ? `one every ${short(ms(l.delay))}` : "without a delay"} (${why(l.source, l.line)}). ` +
    "Pages that are not found yet are not included." : idle(last));
  set(byId("age"), last.started ? `started ${short(Math.floor((now - Date.parse(last.started)) / 1000) * 1000)} ago` : "");
  hosts.tick(now, passed);
}

// ask changes the question and opens a new stream.
function ask(change) {
  Object.assign(question, change);
  begin();
}

function begin() {
  byId("sort").value = question.sort.replace("-", "");
  remember();
  hosts.reorder();
  clearTimeout(frozen);
  frozen = undefined;
  listen();
}

let typing;
byId("q").addEventListener("input", e => {
  clearTimeout(typing);
  typing = setTimeout(() => ask({ q: e.target.value.trim(), n: 50 }), 150);
});
byId("sort").addEventListener("change", e => ask({ sort: e.target.value }));
for (const button of document.querySelectorAll("[data-sort]")) {
  button.addEventListener("click", () => ask({ sort: question.sort === button.dataset.sort ? "-" + button.dataset.sort : button.dataset.sort }));
}
byId("more").addEventListener("click", () => ask({ n: 200 }));
document.addEventListener("keydown", e => {
  if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !e.target.matches("input, select, textarea")) {
    e.preventDefault();
    byId("q").focus();
  }
});
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", e => e.persisted && listen());

drawer.begin(robots.openHost, remember, () => clock());
hosts.begin(drawer.open);
pause.begin();
chart.begin();
byId("q").value = question.q;
const first = new URLSearchParams(location.search).get("host");
if (first) drawer.open(first);
begin();
alive();
setInterval(tick, 250);
