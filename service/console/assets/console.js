// The pages of the console. The address after # names the page and its parameters.
import { cache, queues, sessions } from "./actions.js";
import { configured, live, load } from "./api.js";
import { bytes, card, chart, duration, el, measured, moment, number, part, percent, redraw, shown, table } from "./dom.js";
import { endpoint, endpoints, link, traffic } from "./endpoints.js";
import { events } from "./events.js";
import { recentTraces, trace } from "./traces.js";

const content = document.getElementById("content");
const state = document.getElementById("state");
const HISTORY = 120;
const LATE = 10;
const TYPING = 300;
const LEVELS = ["Verbose", "Debug", "Information", "Warning", "Error", "Fatal"];

// Of findings, and of changes for clients.
const SEVERITIES = ["high", "medium", "low", "breaking", "doubtful", "compatible"];

const say = (text) => {
  state.textContent = text;
};

const pools = (report) => table("Connection pools", [["Connection", (one) => one.connection], ["Pool", (one) => one.pool], measured("Connections", "connections"), measured("In flight", "inFlight"), measured("At most", "most"), ["Saturation", (one) => el("span", { class: one.saturation > 0.8 ? "warn" : null }, percent(one.saturation)), (one) => one.saturation], measured("Waiting", "waiting")], report.pools, { empty: "None: no worker has opened a connection." });

// All services that share the database or Redis, with the reason if others cannot be asked.
const hosts = (report) => [
  table("Hosts", [["Host", (one) => (one.self ? el("strong", {}, `${one.host} (this one)`) : one.host)], ["Application", (one) => `${one.application} (${one.environment})`], ["Address", (one) => one.url || "–"], ["Version", (one) => one.version], ["Workers", (one) => el("span", { class: one.workers < one.configured ? "warn" : null }, `${one.workers} of ${one.configured}`), (one) => one.workers], measured("Requests/s", "requestsPerSecond"), measured("Errors/s", "errorsPerSecond"), ["Started", (one) => moment(one.started)], ["Last seen", (one) => el("span", { class: one.lastSeenSeconds > LATE ? "bad" : null }, one.lastSeenSeconds > LATE ? `${duration(one.lastSeenSeconds)} ago` : "now"), (one) => -one.lastSeenSeconds]], report.hosts),
  report.unavailable.hosts ? el("p", { class: "soft" }, `Only this host is listed: ${report.unavailable.hosts}.`) : "",
];

// What the overview shows before the first report, so that nothing moves when it arrives.
const NOTHING = { latency: {}, cache: {}, pools: [], processes: [], streams: [], hosts: { hosts: [], unavailable: {} } };

function overview(content) {
  const cards = el("dl", { class: "cards" });
  const charts = el("div", { class: "charts" });
  const tables = el("div");
  const history = [];
  content.append(el("h2", {}, "Overview"), cards, charts, el("p", { class: "soft" }, "Charts show the last two minutes while this page is open."), tables);
  const draw = (now) => {
    cards.replaceChildren(
      card("Requests a second", number(now.requestsPerSecond)),
      card("p50", duration(now.latency.p50)),
      card("p90", duration(now.latency.p90)),
      card("p99", duration(now.latency.p99)),
      card("Errors a second", number(now.errorsPerSecond), now.errorsPerSecond ? "bad" : null),
      card("In flight", number(now.inFlight)),
      card("Cache hits", percent(now.cache.ratio)),
      card("Workers", now.processes.length ? number(now.processes.length - 1) : "–", now.silentWorkers ? "warn" : null),
      card("Endpoints", number(now.endpoints)),
      card("Hosts", now.hosts.hosts.length ? number(now.hosts.hosts.length) : "–", now.hosts.hosts.some((one) => one.lastSeenSeconds > LATE) ? "warn" : null),
    );
    charts.replaceChildren(
      chart("Requests a second", history.map((one) => one.requestsPerSecond), number),
      chart("p99", history.map((one) => one.latency.p99), duration),
      chart("Errors a second", history.map((one) => one.errorsPerSecond), number),
      chart("Waiting for a connection", history.map((one) => one.pools.reduce((sum, pool) => sum + pool.waiting, 0)), number),
    );
    if (!now.processes.length) return;
    redraw(
      tables,
      pools(now),
      ...hosts(now.hosts),
      table("Processes", [["Process", (one) => one.name], measured("Pid", "pid", shown), measured("Memory", "memoryBytes", bytes), measured("Processor time", "processorSeconds", duration), measured("Open files", "openFiles")], now.processes),
      table("Event streams", [["Path", (one) => one.path], measured("Open", "open")], now.streams, { empty: "None is open." }),
    );
  };
  draw(NOTHING);
  return live("live", {}, (now) => {
    history.push(now);
    if (history.length > HISTORY) history.shift();
    draw(now);
  }, say);
}

async function database(content) {
  const [report, now] = await Promise.all([load("database"), load("overview")]);
  content.append(
    el("h2", {}, "Database"),
    pools(now),
    table("Sessions", [measured("Pid", "pid", shown), ["User", (one) => one.user], ["Application", (one) => one.application], ["State", (one) => one.state], ["Waits for", (one) => one.waitEvent], ["Blocked by", (one) => (one.blockedBy.length ? one.blockedBy.join(", ") : "–")], measured("Transaction", "transactionSeconds", duration), ["Statement", (one) => one.query]], report.sessions ?? [], part(report, "sessions", "None.")),
    table("Locks that are waited for", [measured("Pid", "pid", shown), ["Type", (one) => one.type], ["Mode", (one) => one.mode], ["Relation", (one) => one.relation], ["Blocked by", (one) => one.blockedBy.join(", ")], measured("Waits", "waitSeconds", duration)], report.locks ?? [], part(report, "locks", "No session waits for a lock.")),
    table("Replicas", [["Application", (one) => one.application], ["Address", (one) => one.address], ["State", (one) => one.state], ["Sync", (one) => one.sync], measured("Lag", "lagSeconds", duration)], report.replicas ?? [], part(report, "replicas", "No server replicates this one.")),
    table("Statements by time", [["Statement", (one) => one.query], measured("Calls", "calls"), measured("Total", "seconds", duration), measured("Mean", "meanSeconds", duration), measured("Rows", "rows")], report.statements ?? [], part(report, "statements", "None.")),
  );
}

async function configuration(content) {
  const search = el("input", { type: "search" });
  const changed = el("select", {}, el("option", { value: "true" }, "configured keys"), el("option", { value: "" }, "all keys"));
  const result = el("div");
  let generation = 0;
  const draw = async () => {
    generation += 1;
    const mine = generation;
    const { keys } = await load("configuration", { search: search.value, changed: changed.value });
    if (mine !== generation) return;
    result.replaceChildren(table(`${keys.length} keys`, [["Key", (one) => one.key], ["Value", (one) => shown(one.value)], ["Source", (one) => one.source ?? "default"], ["Meaning", (one) => one.meaning]], keys, { empty: "No key contains this text.", name: "Keys" }));
  };
  search.addEventListener("input", draw);
  changed.addEventListener("change", draw);
  const filter = el("form", { class: "filter", submit: (event) => event.preventDefault() }, el("label", {}, "Search", search), el("label", {}, "Show", changed));
  content.append(el("h2", {}, "Configuration"), filter, result);
  await draw();
}

async function diagnosis(content) {
  const report = await load("diagnosis");
  const line = [["Text", (text) => text]];
  content.append(
    el("h2", {}, "Diagnosis"),
    el("p", {}, `${report.open.length} of ${report.endpoints} endpoints are open to anonymous callers; the service connects as ${report.role}.`),
    table("Findings", [["Severity", (one) => el("span", { class: one.severity === "high" ? "bad" : one.severity === "medium" ? "warn" : null, "data-order": SEVERITIES.indexOf(one.severity) }, one.severity)], ["About", (one) => one.about], ["Finding", (one) => one.message], ["Remedy", (one) => one.remedy]], report.findings),
    table("Warnings", line, report.warnings),
    table("Left out", line, report.leftOut),
    table("Open endpoints", line, report.open),
  );
}

async function schema(content) {
  const report = await load("schema");
  const names = (list) => (list.length ? list.join("\n") : "–");
  content.append(
    el("h2", {}, "Schema"),
    el("p", {}, `Snapshot ${report.snapshot} with ${report.endpoints} endpoints.`),
    table("Reloads", [["Time", (one) => moment(one.time)], measured("Snapshot", "snapshot", shown), ["Added", (one) => names(one.added)], ["Changed", (one) => names(one.changed)], ["Removed", (one) => names(one.removed)]], report.reloads, { empty: "None since the start. A reload follows a change of functions, comments, tables or files." }),
    table("Changes for clients", [["Severity", (one) => el("span", { class: one.severity === "breaking" ? "bad" : one.severity === "doubtful" ? "warn" : null, "data-order": SEVERITIES.indexOf(one.severity) }, one.severity)], ["Endpoint", (one) => one.endpoint], ["Change", (one) => one.change], measured("Snapshot", "snapshot", shown)], report.reloads.flatMap((reload) => reload.contract.map((one) => ({ ...one, snapshot: reload.snapshot })))),
    table("Left out", [["Reason", (reason) => reason]], report.leftOut),
  );
}

function log(content, parameters, title = "Log", more = [], empty = "No entry matches. New ones appear here as they arrive.") {
  const search = el("input", { type: "search", value: parameters.search ?? "" });
  const level = el("select", {}, LEVELS.map((name) => el("option", { value: name, selected: name === (parameters.level ?? "Information") }, name)));
  const channel = el("input", { type: "search", value: parameters.channel ?? "" });
  const result = el("div");
  let entries = [];
  let newest = 0;
  let typing = null;
  let stop = () => {};
  const mark = (name) => (name === "Error" || name === "Fatal" ? "bad" : name === "Warning" ? "warn" : null);
  const draw = () => redraw(result, table("Entries, newest first", [["Time", (one) => moment(one.time)], ["Level", (one) => el("span", { class: mark(one.level), "data-order": LEVELS.indexOf(one.level) }, one.level)], ["Channel", (one) => one.channel], ["Message", (one) => (one.exception ? el("div", {}, one.message, el("pre", {}, one.exception)) : one.message)], ...more], entries, { empty }));
  const start = () => {
    stop();
    entries = [];
    newest = 0;
    draw();
    stop = live("log/live", { search: search.value, level: level.value, channel: channel.value }, (report) => {
      // A stream that was interrupted begins again with entries that are known.
      entries = [...report.entries.filter((one) => one.number > newest).reverse(), ...entries].slice(0, 500);
      newest = entries[0]?.number ?? newest;
      draw();
    }, say);
  };
  for (const input of [search, level, channel]) {
    input.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(start, TYPING);
    });
  }
  const filter = el("form", { class: "filter", submit: (event) => event.preventDefault() }, el("label", {}, "Search", search), el("label", {}, "From level", level), el("label", {}, "Channel", channel));
  content.append(el("h2", {}, title), filter, result);
  start();
  return () => {
    clearTimeout(typing);
    stop();
  };
}

async function requests(content, parameters) {
  const traces = await recentTraces();
  const trace = [["Trace", (one) => (one.properties.TraceId ? traces.link(one.properties.TraceId) : "")]];
  const empty = "No entry matches. Requests are logged in the channel rowcall.http at the level Information, unless Log:MinimalLevels says otherwise.";
  const stop = log(content, { channel: "rowcall.http", ...parameters }, "Requests", traces.enabled ? trace : [], empty);
  content.querySelector("form").after(traces.room);
  return () => {
    stop();
    traces.stop();
  };
}

// Slow requests, each with a link to its endpoint, where its plan can be asked for.
const SLOW = /^slow request: (\S+) (\S+) /;
const plan = [["Plan", (one) => {
  const found = SLOW.exec(one.message);
  return found ? el("a", { href: link({ method: found[1], path: found[2] }) }, `Plan of ${found[1]} ${found[2]}`) : "";
}]];

async function slow(content, parameters) {
  const threshold = await configured("Log:SlowRequests:Threshold");
  const empty = threshold ? `No entry matches. Requests that take longer than ${threshold} are logged.` : "Slow requests are not logged. Set Log:SlowRequests:Threshold, for example to 500 ms.";
  return log(content, { channel: "rowcall.slow", ...parameters }, "Slow requests", plan, empty);
}

// The navigation in index.html leads to these.
const PAGES = { overview, endpoints, traffic, requests, slow, database, cache, queues, events: events(say), sessions, configuration, diagnosis, schema, log };
const DETAILS = { endpoint, trace };
let leave = () => {};
let visit = 0;

async function show() {
  visit += 1;
  const mine = visit;
  leave();
  leave = () => {};
  say("");
  const [name, query] = (location.hash.slice(1) || "overview").split("?");
  const known = { ...PAGES, ...DETAILS };
  const page = Object.hasOwn(known, name) ? known[name] : overview;
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.getAttribute("href") === `#${name}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  const room = el("div");
  content.replaceChildren(room);
  try {
    const left = await page(room, Object.fromEntries(new URLSearchParams(query ?? "")));
    if (mine === visit) leave = left ?? (() => {});
    else left?.();
  } catch (error) {
    room.prepend(el("p", { role: "alert" }, error.message));
  }
  document.title = `${room.querySelector("h2")?.textContent ?? "rowcall"} · rowcall console`;
  room.setAttribute("data-ready", name);
}

document.getElementById("sign-out").addEventListener("click", async () => {
  await fetch("/console/api/session", { method: "DELETE", headers: { "x-rowcall-console": "1" } });
  location.assign("/console/sign-in");
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
addEventListener("hashchange", show);
show();
