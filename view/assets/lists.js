// This file shows the denials and the sitemaps.
import { ago, byId, make, many, number, plain, set } from "./text.js";
import { reasons } from "./reasons.js";

// rule returns the text of the rule or the reason of a denial.
function rule(d) {
  if (d.reason === "rule" && d.line) return `${d.allow ? "Allow" : "Disallow"}: ${plain(d.pattern)}`;
  if (d.reason === "rule") return `a rule that ${d.dialect} does not report`;
  return reasons[d.reason] || d.reason;
}

// file returns the name of the robots.txt of a denial.
const file = d => d.option === "RobotsTxt" ? `the option RobotsTxt for ${d.host}` : d.robots_url;

// entry returns the denials of one host by a rule.
function entry(d, open) {
  const where = [];
  if (d.line) where.push(`line ${d.line} of `, make("span", "data", plain(file(d), 120)));
  else if (d.robots_url) where.push(make("span", "data", plain(d.robots_url, 120)), d.status ? `, status ${d.status}` : "");
  else where.push(make("span", "data", plain(d.host, 120)));
  if (d.option && d.option !== "RobotsTxt") where.push(`, by the option ${plain(d.option, 40)}`);
  if (d.group) where.push(", group ", make("span", "data", plain(d.group, 60)));
  where.push(` · ${number(d.count)} ×`);
  const item = make("div", "entry", make("p", "soft", ...where));
  if (d.robots_url) {
    const button = make("button", "small", "Show");
    button.type = "button";
    button.title = `show this rule in ${plain(d.robots_url, 200)}`;
    button.setAttribute("aria-label", button.title);
    button.addEventListener("click", () => open(d.robots_url, d.urls[0], d.group === "*" ? "" : d.group));
    item.firstChild.append(" ", button);
  }
  if (d.error) item.append(make("p", "soft error", plain(d.error)));
  item.append(make("p", "urls", ...d.urls.map(u => make("span", "data", plain(u, 160)))));
  return item;
}

const key = d => [d.reason, d.allow ? 1 : 0, d.pattern || "", d.option || ""].join("\n");
const opened = new Set(); // the keys of the rules with all hosts

// denials shows the denials by rule. Each rule has the latest hosts. total is the number of all
// denials, or undefined if only some hosts are shown.
export function denials(all, rules, total, open) {
  const listed = rules.reduce((n, d) => n + d.count, 0);
  const count = Math.max(total ?? 0, listed);
  byId("no-denials").hidden = count > 0;
  set(byId("denials-count"), count ? `${many(count, "request")}${count > listed ? `, ${number(count - listed)} of them by other rules` : ""}` : "");
  byId("denial-list").replaceChildren(...rules.map(r => {
    const entries = all.filter(d => key(d) === key(r)), latest = entries[0];
    let title = make("b", "", rule(latest || r));
    if (latest?.robots_url) {
      title = make("button", "rule", rule(latest));
      title.type = "button";
      title.title = "show this rule in robots.txt";
      title.addEventListener("click", () => open(latest.robots_url, latest.urls[0], latest.group === "*" ? "" : latest.group));
    }
    const hosts = `${number(r.hosts)}${r.more_hosts ? " or more" : ""} hosts`;
    const item = make("li", "", make("div", "line", title, make("span", "times", `${number(r.count)} ×${r.hosts > 1 ? `, ${hosts}` : ""}`)));
    item.append(...entries.slice(0, 2).map(d => entry(d, open)));
    if (entries.length > 2) {
      const more = make("details", "", make("summary", "soft", `${number(entries.length - 2)} more hosts`), ...entries.slice(2).map(d => entry(d, open)));
      more.open = opened.has(key(r));
      more.addEventListener("toggle", () => more.open ? opened.add(key(r)) : opened.delete(key(r)));
      item.append(more);
    }
    return item;
  }));
}

// failures shows the failed pages by reason. total is the number of all failed pages.
export function failures(reasons, total) {
  byId("no-failures").hidden = total > 0;
  set(byId("failures-count"), total ? many(total, "page") : "");
  byId("failure-list").replaceChildren(...reasons.map(f => {
    const hosts = f.hosts > 1 ? `, ${number(f.hosts)}${f.more_hosts ? " or more" : ""} hosts` : "";
    const title = make("b", "", `${f.status ? `${f.status} ` : ""}${plain(f.reason, 200)}`);
    return make("li", "", make("div", "line", title, make("span", "times", `${number(f.count)} ×${hosts}`)),
      make("p", "urls", ...f.urls.map(u => make("span", "data", plain(u, 160)))));
  }));
}

const outcomes = [["fed", "passed to the crawl"], ["resumed", "done in an earlier run"], ["denied", "denied"], ["old", "too old"], ["dropped", "dropped by Keep"],
  ["out_of_scope", "out of scope"], ["duplicate", "duplicates"], ["refused", "found through links before, or refused by the collector"], ["given_up", "given up"]];

// sitemaps shows the progress of the sitemaps.
export function sitemaps(m, now) {
  const s = m.stats, parts = [];
  let rest = s.entries;
  for (const [key, text] of outcomes) {
    if (s[key] > 0) parts.push([key, s[key], text]);
    rest -= s[key];
  }
  if (rest > 0) parts.push(["rest", rest, "remaining"]);
  set(byId("sitemaps-count"), s.files + s.files_failed ? `${many(s.files, "file")} read, ${many(s.entries, "page")} listed${s.files_failed ? `, ${number(s.files_failed)} could not be read` : ""}` : "");
  byId("no-sitemaps").hidden = m.files.length > 0 || s.files > 0;
  const bar = byId("feed");
  bar.hidden = s.entries === 0;
  bar.replaceChildren(...parts.map(([key, n]) => {
    const part = make("span", "part " + key);
    part.style.flexGrow = n;
    return part;
  }));
  bar.setAttribute("aria-label", parts.map(([, n, text]) => `${n} ${text}`).join(", "));
  byId("feed-key").replaceChildren(...parts.map(([key, n, text]) => make("li", "", make("i", "part " + key), `${number(n)} ${text}`)));
  byId("sitemap-list").replaceChildren(...m.files.map(f => {
    const item = make("li", "", make("div", "line", make("span", "data", plain(f.url, 160)), make("span", "times", f.error ? "" : many(f.entries, "entry", "entries"))));
    if (f.error) item.append(make("p", "soft error", plain(f.error)));
    return item;
  }));
}
