// Event streams of all workers.
import { buttons } from "./actions.js";
import { live } from "./api.js";
import { ACTION, card, chart, el, measured, moment, number, redraw, table } from "./dom.js";

const HISTORY = 120;

// Returns the change of a number a second between each two reports.
const rates = (history, name) => history.slice(1).map((report, place) => Math.max(0, report[name] - history[place][name]) / Math.max(0.1, (report.at - history[place].at) / 1000));

export const events = (say) => async (content) => {
  const cards = el("dl", { class: "cards" });
  const charts = el("div", { class: "charts" });
  const tables = el("div");
  const history = [];
  const { allowed, button } = await buttons(async () => {});
  const action = allowed ? [[ACTION, (one) => button("End", "end-stream", { id: one.id }, `End this stream of ${one.path}? A browser opens it again.`)]] : [];
  content.append(el("h2", {}, "Events"), el("p", { id: "result", role: "status" }), cards, charts, tables);
  return live("events/live", {}, (now) => {
    history.push({ ...now, at: Date.now() });
    if (history.length > HISTORY) history.shift();
    cards.replaceChildren(
      card("Open streams", number(now.open)),
      card("Published here", number(now.published)),
      card("From other hosts", number(now.received)),
      card("Notified by PostgreSQL", number(now.notified)),
      card("Delivered to streams", number(now.delivered)),
      card("Dropped", number(now.dropped), now.dropped ? "warn" : null),
      now.silentWorkers ? card("Workers without an answer", number(now.silentWorkers), "warn") : "",
      card("For reconnections", `${number(now.replay.events)} of ${number(now.replay.most)}`),
    );
    charts.replaceChildren(
      chart("Open streams", history.map((one) => one.open), number),
      chart("Published a second", rates(history, "published"), number),
      chart("Delivered a second", rates(history, "delivered"), number),
      chart("Dropped a second", rates(history, "dropped"), number),
    );
    redraw(
      tables,
      table("Channels of PostgreSQL", [["Channel", (one) => one.channel], ["State", (one) => (one.listening ? "listening" : el("span", { class: "warn" }, "not listening"))], measured("Notifications", "notified"), measured("Listed streams", "streams")], now.channels, { empty: "None: no endpoint streams notifications of PostgreSQL (sse_listen)." }),
      table("Streams, the oldest first", [["Path", (one) => one.path], ["Channel", (one) => one.channel || "–"], ["User", (one) => one.user ?? "anonymous"], ["Client", (one) => one.address], ["Worker", (one) => one.worker], ["Since", (one) => moment(one.began)], measured("Waiting", "waiting"), measured("Dropped", "dropped"), ...action], now.streams, { empty: "None is open." }),
    );
  }, say);
};
