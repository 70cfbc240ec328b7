// The list of endpoints, of which only the visible rows exist, and one endpoint in detail.
import { load } from "./api.js";
import { card, duration, el, measured, number, percent, shown, table } from "./dom.js";
import { tryIt } from "./try.js";

const PAGE = 100;

export const link = (item) => `#endpoint?${new URLSearchParams({ method: item.method, path: item.path })}`;

export async function endpoints(content) {
  const rowHeight = 3.25 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const search = el("input", { type: "search", id: "search" });
  const schema = el("select", { id: "schema" }, el("option", { value: "" }, "all"));
  const grouping = el("select", {}, [["", "nothing"], ["schema", "schema"], ["tag", "tag"]].map(([value, label]) => el("option", { value }, label)));
  const count = el("p", { role: "status", class: "soft" });
  const rows = el("ul");
  const list = el("div", { class: "list", tabindex: "0", role: "region", "aria-label": "Endpoints" }, rows);
  const left = el("div");
  let pages = new Map();
  let total = 0;
  let rowCount = 0;
  let groups = [];
  let generation = 0;

  async function page(place) {
    if (pages.has(place)) return;
    pages.set(place, null);
    const mine = generation;
    const result = await load("endpoints", { search: search.value, schema: schema.value, group: grouping.value, offset: place * PAGE, limit: PAGE });
    if (mine !== generation) return;
    pages.set(place, result.endpoints);
    if (place === 0) {
      total = result.total;
      count.textContent = total ? `${number(total)} endpoint${total === 1 ? "" : "s"}` : search.value || schema.value ? "No endpoint matches." : "There are no endpoints. A function, table or file is served if its comment has a line such as HTTP GET.";
      list.hidden = !total;
      groups = grouping.value ? result.groups : [];
      rowCount = total + groups.length;
      for (let place = 0, start = 0; place < groups.length; start += groups[place].count + 1, place += 1) groups[place].row = start;
      rows.style.height = `${rowCount * rowHeight}px`;
      if (schema.options.length === 1) schema.append(...result.schemas.map((name) => el("option", { value: name }, name)));
      left.replaceChildren(table("Left out", [["Reason", (reason) => reason]], result.leftOut, { empty: "Nothing: all comments are understood." }));
    }
    draw();
  }

  function draw() {
    const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 5);
    const end = Math.min(rowCount, Math.ceil((list.scrollTop + list.clientHeight) / rowHeight) + 5);
    const focused = rows.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const visible = [];
    for (let place = first; place < end; place += 1) {
      const group = groups.findLastIndex((one) => one.row <= place);
      if (group >= 0 && groups[group].row === place) {
        visible.push(header(groups[group], place));
        continue;
      }
      const index = place - group - 1;
      const known = pages.get(Math.floor(index / PAGE));
      if (!known) {
        page(Math.floor(index / PAGE));
        continue;
      }
      const item = known[index % PAGE];
      if (item) visible.push(row(item, place));
    }
    rows.replaceChildren(...visible);
    if (focused !== null) [...rows.querySelectorAll("a")].find((anchor) => anchor.getAttribute("href") === focused)?.focus({ preventScroll: true });
  }

  function at(place, content) {
    const element = el("li", { "aria-setsize": rowCount, "aria-posinset": place + 1 }, content);
    element.style.top = `${place * rowHeight}px`;
    return element;
  }

  const header = (group, place) => at(place, el("h3", {}, `${group.name || "without a tag"} (${number(group.count)})`));

  function row(item, place) {
    const requests = item.traffic ? `${number(item.traffic.requests)} requests` : "";
    const anchor = el("a", { href: link(item) }, el("span", {}, item.method), el("span", {}, item.path), el("span", {}, requests), el("span", { class: "soft" }, `${item.routine} · ${item.access}`));
    return at(place, anchor);
  }

  function start() {
    generation += 1;
    pages = new Map();
    list.scrollTop = 0;
    return page(0);
  }

  search.addEventListener("input", start);
  schema.addEventListener("change", start);
  grouping.addEventListener("change", start);
  list.addEventListener("scroll", () => requestAnimationFrame(draw));
  const filter = el("form", { class: "filter", submit: (event) => event.preventDefault() }, el("label", {}, "Search", search), el("label", {}, "Schema", schema), el("label", {}, "Group by", grouping));
  content.append(el("h2", {}, "Endpoints"), filter, count, list, left);
  await start();
}

const AGAIN = 5000;
const span = (seconds) => (seconds >= 3540 ? "last hour" : `last ${duration(seconds)}`);

// Calls `draw` again and again until the returned function is called.
function repeatedly(draw) {
  const timer = setInterval(() => draw().catch(() => {}), AGAIN);
  return () => clearInterval(timer);
}

const hourCards = (hour) => [
  card("Requests", number(hour.requests)),
  card("Server errors", number(hour.errors), hour.errors ? "bad" : null),
  card("Client errors", number(hour.statuses["4xx"] ?? 0)),
  card("p50", duration(hour.p50Seconds)),
  card("p90", duration(hour.p90Seconds)),
  card("p99", duration(hour.p99Seconds)),
];

function lastHour(room, item) {
  const heading = el("h3", {}, `Traffic of the ${span(item.lastHourSeconds)}`);
  room.replaceChildren(heading, item.lastHour ? el("dl", { class: "cards" }, hourCards(item.lastHour)) : el("p", { class: "soft" }, "None."));
}

export async function endpoint(content, parameters) {
  const item = await load("endpoint", parameters);
  const traffic = item.traffic;
  const cards = [card("Access", item.access), card("Authentication", item.authentication)];
  if (traffic) {
    cards.push(card("Requests since the start", number(traffic.requests)), card("Server errors", percent(traffic.requests ? traffic.errors / traffic.requests : null)), card("Mean", duration(traffic.meanSeconds)), card("p99", duration(traffic.p99Seconds)));
  }
  const attempt = await tryIt(item);
  const hour = el("div");
  lastHour(hour, item);
  content.append(
    el("h2", {}, `${item.method} ${item.path}`),
    el("dl", { class: "cards" }, cards),
    hour,
    item.conditions.length ? table("Conditions", [["Condition", (text) => text]], item.conditions) : "",
    el("h3", {}, "Comment"),
    el("pre", {}, shown(item.comment)),
    table("Parameters", [["Name", (one) => one.name], ["In SQL", (one) => one.originalName], ["Type", (one) => one.type], ["Default", (one) => (one.hasDefault ? "yes" : "no")]], item.description.parameters),
    table("Columns", [["Name", (one) => one.name], ["Type", (one) => one.type]], item.description.returnColumns ?? []),
    el("h3", {}, "Example"),
    el("pre", { tabindex: "0" }, item.example),
    el("h3", {}, "SQL"),
    el("pre", {}, shown(item.sql ?? item.description.routine.definition)),
    el("h3", {}, "Plan"),
    explain(parameters),
    attempt.element,
  );
  const stop = repeatedly(async () => lastHour(hour, await load("endpoint", parameters)));
  return () => {
    stop();
    attempt.stop();
  };
}

// A button that shows the plan of the statement, which is not run.
function explain(parameters) {
  const result = el("div", { role: "status" });
  const button = el("button", { type: "button", click: async () => {
    button.disabled = true;
    try {
      const { statement, plan } = await load("plan", parameters);
      result.replaceChildren(el("pre", {}, statement), el("pre", {}, plan));
    } catch (error) {
      result.replaceChildren(el("p", { class: "warn" }, error.message));
    } finally {
      button.disabled = false;
    }
  } }, "Explain");
  return el("div", {}, button, result);
}

export async function traffic(content) {
  const sort = el("select", {}, [["requests", "requests"], ["errors", "errors"], ["p99Seconds", "p99"], ["totalSeconds", "total time"]].map(([value, label]) => el("option", { value }, label)));
  const result = el("div");
  const draw = async () => {
    const report = await load("traffic", { sort: sort.value, limit: 200 });
    result.replaceChildren(table(`Endpoints with requests in the ${span(report.seconds)}: ${number(report.total)}`, [["Endpoint", (one) => el("a", { href: link(one) }, `${one.method} ${one.path}`)], measured("Requests", "requests"), measured("Server errors", "errors"), ["Client errors", (one) => number(one.statuses["4xx"] ?? 0), (one) => one.statuses["4xx"] ?? 0], measured("p50", "p50Seconds", duration), measured("p90", "p90Seconds", duration), measured("p99", "p99Seconds", duration), measured("Total time", "totalSeconds", duration)], report.endpoints, { empty: "No endpoint has had a request.", name: "Traffic" }));
  };
  sort.addEventListener("change", draw);
  content.append(el("h2", {}, "Traffic"), el("form", { class: "filter", submit: (event) => event.preventDefault() }, el("label", {}, "Most by", sort)), result);
  await draw();
  return repeatedly(draw);
}
