// This file formats texts for the page. Data of the crawl must be added to the page as text only,
// never as markup.

// ms converts a duration of a message, which is in seconds and may be missing, to milliseconds.
export const ms = seconds => (seconds || 0) * 1e3;

// short formats milliseconds for the page.
export function short(t) {
  if (!(t > 0)) return "0 s";
  if (t < 1) t = 1;
  if (t < 1000) return `${(t / 1000).toFixed(t < 100 ? 3 : 2).replace(/0+$/, "")} s`;
  if (t < 10000) return `${+(t / 1000).toFixed(2)} s`;
  const s = Math.round(t / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${number(Math.floor(s / 86400))} days`;
}

// whole is like short but without fractions, for countdowns.
export const whole = t => short(t < 10000 ? Math.ceil(t / 1000) * 1000 : t);

const format = new Intl.NumberFormat("en");
export const number = n => format.format(n || 0);
export const many = (n, one, more) => `${number(n)} ${n === 1 ? one : more || one + "s"}`;

// plain makes invisible characters visible, such as those that change the direction of text, and
// truncates long text.
export function plain(text, most = 300) {
  let s = String(text ?? "");
  if (s.length > most) s = s.slice(0, most) + "…";
  return s.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

// set sets the text of an element if it differs.
export function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// make returns an element with a class and children, which may be texts.
export function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children);
  return element;
}

export const byId = id => document.getElementById(id);

// clock formats a time of the near future or past in the time zone of the browser, as all times on
// the page: "22:00", or "Mon 22:00" if it is on another day than now.
export function clock(time, now) {
  const at = new Date(time);
  const day = at.toDateString() === new Date(now).toDateString() ? {} : Math.abs(at - now) < 6 * 86400e3 ? { weekday: "short" } : { day: "numeric", month: "short" };
  return at.toLocaleString("en-GB", { hour: "2-digit", minute: "2-digit", ...day });
}

// why returns a description of the source of a delay. status is that of the last response, and
// response the smoothed response time in seconds.
export function why(source, line, status, response) {
  switch (source) {
    case "crawl_delay": return line ? `Crawl-delay, robots.txt line ${line}` : "Crawl-delay in robots.txt";
    case "min_delay": return "MinDelay of this crawl";
    case "paused": return "by the operator";
    case "max_rate": return "MaxRate of this crawl, for all hosts together";
    case "hours": return "CrawlHours of this crawl";
    case "adaptive": return response ? `AdaptiveDelay, the host responds in ${short(ms(response))}` : "AdaptiveDelay of this crawl";
    case "back_off": return "back-off after 429 or 503";
    case "request_rate": return line ? `Request-rate, robots.txt line ${line}` : "Request-rate in robots.txt";
    case "visit_time": return line ? `Visit-time, robots.txt line ${line}` : "Visit-time in robots.txt";
    case "retry_after": return `Retry-After of a ${status || "429"} response`;
  }
  return "no delay requested";
}

// ago returns how long ago a time was.
export function ago(time, now) {
  const t = now - Date.parse(time);
  return t < 1500 ? "now" : `${short(Math.floor(t / 1000) * 1000)} ago`;
}

// times formats the ratio of a gap to the delay. It rounds down, so that a gap below the delay
// never appears as 1.00.
export const times = ratio => `${(Math.floor(ratio * 100) / 100).toFixed(2)}\u00a0×`;

// classes are the classes of statuses in a message, and their names on the page.
export const classes = [["2xx", "2xx"], ["3xx", "3xx"], ["4xx", "4xx"], ["throttled", "429 or 503"], ["5xx", "other 5xx"], ["none", "without a response"]];

// statusText lists the statuses of responses.
export const statusText = s => classes.filter(([key]) => s?.[key]).map(([key, name]) => `${number(s[key])} × ${name}`).join(", ");

// parts fills a bar with parts, each with a class, a number and a name. It hides the bar if all
// numbers are 0.
export function parts(bar, all) {
  const some = all.filter(([, n]) => n > 0);
  bar.hidden = !some.length;
  bar.replaceChildren(...some.map(([name, n]) => {
    const part = make("span", "part " + name);
    part.style.flexGrow = n;
    return part;
  }));
  const text = some.map(([, n, what]) => `${number(n)} ${what}`).join(", ");
  bar.setAttribute("aria-label", text);
  bar.title = text;
}
