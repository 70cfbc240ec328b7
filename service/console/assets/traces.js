// The last traced requests, and the spans of one trace as a waterfall.
import { load } from "./api.js";
import { duration, el, measured, moment, number, shown, svg, table } from "./dom.js";
import { link } from "./endpoints.js";

const traceLink = (id) => `#trace?${new URLSearchParams({ id })}`;
const AGAIN = 5000;

const status = (span) => el("span", { class: span.failed ? "bad" : null }, shown(span.attributes["http.response.status_code"]));

// Returns an element with the last traced requests, the function that returns the link to a trace if its spans are stored, and
// one that ends its updates. It is empty if tracing is off.
export async function recentTraces() {
  const room = el("div");
  let known = new Set();
  let enabled = false;
  const draw = async () => {
    const report = await load("traces", { limit: 100 });
    enabled = report.enabled;
    known = new Set(report.traces.map((one) => one.trace));
    if (!enabled || room.contains(document.activeElement)) return;
    room.replaceChildren(table("Traces of the last sampled requests", [["Time", (one) => moment(one.began)], ["Request", (one) => el("a", { href: traceLink(one.trace) }, one.name)], ["Status", status, (one) => one.attributes["http.response.status_code"]], measured("Duration", "seconds", duration), ["Worker", (one) => one.worker]], report.traces.slice(0, 8), { empty: "None yet: a part of the requests is sampled (Tracing:SampleRatio)." }));
  };
  await draw();
  if (!enabled) return { enabled, room, link: () => "", stop: () => {} };
  const timer = setInterval(() => draw().catch(() => {}), AGAIN);
  return { enabled, room, link: (id) => (known.has(id) ? el("a", { href: traceLink(id) }, "trace") : ""), stop: () => clearInterval(timer) };
}

// A bar from the beginning of a span to its end, of the whole time of the trace.
function bar(span, seconds) {
  const whole = Math.max(seconds, 1e-9);
  const width = Math.max((span.seconds / whole) * 1000, 3);
  const start = Math.min((span.offsetSeconds / whole) * 1000, 1000 - width);
  return svg("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { x: start, y: 0, width, height: 10, class: span.failed ? "failed" : span.kind }));
}

const attributes = (span) => table(`Attributes of ${span.name}`, [["Name", ([name]) => name], ["Value", ([, value]) => value]], [["span", span.span], ["kind", span.kind], ["process", span.worker], ["begins after", duration(span.offsetSeconds)], ...Object.entries(span.attributes)]);

function row(span, seconds) {
  const details = el("div");
  const name = el("span", { class: "name" }, span.name);
  name.style.paddingInlineStart = `${span.depth}rem`;
  const element = el("details", { toggle: () => {
    if (element.open && !details.childElementCount) details.append(attributes(span), span.endpoint ? el("p", {}, el("a", { href: link(span.endpoint) }, `Endpoint ${span.endpoint.method} ${span.endpoint.path}`)) : "");
  } }, el("summary", {}, name, bar(span, seconds), el("span", { class: `number ${span.failed ? "bad" : ""}` }, duration(span.seconds))), details);
  return el("li", {}, element);
}

export async function trace(content, parameters) {
  content.append(el("h2", {}, "Trace"));
  const report = await load("trace", parameters);
  content.append(
    el("p", {}, `${report.trace}, `, moment(report.began), `: ${number(report.spans.length)} spans in ${duration(report.seconds)}. `, el("a", { href: `#log?${new URLSearchParams({ search: report.trace })}` }, "Log entries of this trace")),
    el("ol", { class: "waterfall", "aria-label": "Spans" }, report.spans.map((span) => row(span, report.seconds))),
  );
}
