// This file receives the stream of messages and updates all parts of the page.
import { ago, byId, many, number, plain, set, short, times, whole, why, ms } from "./text.js";
import * as chart from "./chart.js";
import * as hosts from "./hosts.js";
import * as lists from "./lists.js";
import * as robots from "./robots.js";

const question = { q: "", sort: "left", n: 50 };
let stream, last, received = 0, silence;

// clock returns the time of the machine on which the crawl runs.
let ahead = 0;
const clock = () => Date.now() + ahead;

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
  hosts.show(m, question, clock());
  if (m.denials) lists.denials(m.denials, clock(), robots.open);
  if (m.sitemaps) lists.sitemaps(m.sitemaps, clock());
  robots.first(m);
  alive();
}

// alive shows whether messages arrive.
function alive() {
  const live = byId("live"), ok = received && performance.now() - received < 5000 && stream.readyState === EventSource.OPEN;
  live.classList.toggle("off", !ok);
  const waiting = last?.totals.waiting > 0 || last?.rate > 0 || last?.frontier?.waiting > 0;
  set(live, !last ? "connecting" : !ok && performance.now() - received > 3000 ? "disconnected, showing the last state received" : last.closed ? "closed, no more requests are sent" : waiting ? "running" : "no page is waiting");
  clearTimeout(silence);
  silence = setTimeout(alive, 3500);
}

// headline updates the cards.
function headline(m) {
  set(byId("done"), number(m.totals.pages));
  const unchanged = m.totals.unchanged ? ` · ${number(m.totals.unchanged)} unchanged` : "";
  set(byId("pages-why"), `${number(m.totals.waiting)} waiting${unchanged} · ${m.rate.toFixed(1)} requests per second`);
  const said = signals(m);
  byId("signals").hidden = !said;
  set(byId("signals"), said);
  frontier(m);
  const g = m.gap_over_delay;
  set(byId("gap"), g ? times(g) : "–");
  byId("gap").classList.toggle("bad", g > 0 && g < 1);
  set(byId("gap-why"), g ? (g < 1 ? "less than the delay" : "every request kept the delay of its host") : "no two requests to a host with a delay yet");
  set(byId("denied"), number(m.totals.denied));
  const by = [["rule", "by a rule of robots.txt"], ["unreachable", "robots.txt unreadable"], ["site_down", "site down"], ["delay", "crawl delay too long"],
    ["usage", "by usage preferences"], ["nofollow", "behind nofollow"], ["refused", "the host refuses"], ["budget", "over the budget"], ["other", "for other reasons"]];
  const denied = by.filter(([reason]) => m.denied_by?.[reason]).map(([reason, text]) => `${number(m.denied_by[reason])} ${text}`);
  set(byId("denied-why"), denied.join(", ") || (m.totals.denied ? "requests not sent" : "every request was allowed"));
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

// frontier updates the card of the pages that wait in the URLStore of the option Frontier.
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
  const endings = [["done", "done"], ["budget", "over the budget"], ["refused", "refusing"], ["cancelled", "cancelled"], ["closed", "closed"]];
  const ended = endings.filter(([name]) => m.ended?.[name]).map(([name, text]) => `${number(m.ended[name])} ${text}`);
  return ended.length ? `No page is waiting. Hosts: ${ended.join(", ")}.` : "No page is waiting.";
}

// tick updates what changes with time.
function tick() {
  if (!last) return;
  const now = clock(), passed = now - Date.parse(last.time), l = last.time_left;
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
  byId("sort").value = question.sort.replace("-", "");
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

hosts.begin(robots.openHost);
chart.begin();
listen();
alive();
setInterval(tick, 250);
