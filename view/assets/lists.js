// This file shows the denials and the sitemaps.
import { ago, byId, make, many, number, plain, reasons, set } from "./text.js";

// rule returns the text of the rule or the reason of a denial.
function rule(d) {
  if (d.reason === "rule" && d.line) return `${d.allow ? "Allow" : "Disallow"}: ${plain(d.pattern)}`;
  if (d.reason === "rule") return `a rule that ${d.dialect} does not report`;
  return reasons[d.reason] || d.reason;
}

// file returns the name of the robots.txt of a denial.
const file = d => d.option === "RobotsTxt" ? `the option RobotsTxt for ${d.host}` : d.robots_url;

// denials shows the denials by rule.
export function denials(all, now, open) {
  byId("no-denials").hidden = all.length > 0;
  set(byId("denials-count"), all.length ? many(all.reduce((n, d) => n + d.count, 0), "request") : "");
  byId("denial-list").replaceChildren(...all.map(d => {
    const button = make("button", "rule", rule(d));
    button.type = "button";
    button.title = "show this rule in robots.txt";
    button.addEventListener("click", () => open(d.robots_url, d.urls[0], d.group === "*" ? "" : d.group));
    const where = [];
    if (d.line) where.push(`line ${d.line} of `, make("span", "data", plain(file(d), 120)));
    else if (d.robots_url) where.push(make("span", "data", plain(d.robots_url, 120)), d.status ? `, status ${d.status}` : "");
    else where.push(make("span", "data", plain(d.host, 120)));
    if (d.option && d.option !== "RobotsTxt") where.push(`, by the option ${plain(d.option, 40)}`);
    if (d.group) where.push(", group ", make("span", "data", plain(d.group, 60)));
    const item = make("li", "", make("div", "line", d.robots_url ? button : make("b", "", rule(d)), make("span", "times", `${number(d.count)} ×`)), make("p", "soft", ...where));
    if (d.error) item.append(make("p", "soft error", plain(d.error)));
    item.append(make("p", "urls", ...d.urls.map(u => make("span", "data", plain(u, 160)))));
    return item;
  }));
}

const outcomes = [["fed", "passed to the crawl"], ["resumed", "done in an earlier run"], ["denied", "denied"], ["old", "too old"], ["dropped", "dropped by Keep"],
  ["out_of_scope", "out of scope"], ["duplicate", "duplicates"], ["refused", "refused by the collector"], ["given_up", "given up"]];

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
