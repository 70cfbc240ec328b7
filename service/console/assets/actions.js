// Pages with actions: cache, queues, sessions. Without Console:AllowActions they have no buttons.
import { act, configured, load } from "./api.js";
import { ACTION, card, duration, el, measured, moment, number, part, percent, redraw, shown, table, time } from "./dom.js";

// Returns whether actions are allowed, and the function that makes the button of an action, or "" if that is not possible.
// After success, `again` runs.
export async function buttons(again) {
  const { actions, allowed } = await load("actions");
  const names = new Set(actions.map((one) => one.name));
  const button = (label, name, values, question) => {
    if (!names.has(name)) return "";
    return el("button", { type: "button", click: async (event) => {
      const chosen = typeof values === "function" ? values() : values;
      if (chosen === null || !confirm(question)) return;
      const button = event.currentTarget;
      button.disabled = true;
      const result = document.getElementById("result");
      try {
        const answer = await act(name, chosen);
        await again();
        button.disabled = false;
        result.textContent = `${label}: ${Object.entries(answer).map(([key, value]) => `${key} ${value}`).join(", ")}`;
      } catch (error) {
        result.textContent = error.message;
        button.disabled = false;
      }
    } }, label);
  };
  return { allowed, button };
}

// Makes a page that is drawn anew after each action; `draw(button, listed, form)` returns its elements. Forms are made once, so that
// they keep what was typed.
async function page(content, title, draw) {
  const room = el("div");
  content.append(el("h2", {}, title), el("p", { id: "result", role: "status" }), room);
  const forms = new Map();
  const once = (name, fields, make) => {
    if (!forms.has(name)) forms.set(name, form(name, fields, make));
    return forms.get(name);
  };
  const again = async () => redraw(room, ...(await draw(button, listed, once)).filter((part) => part !== ""));
  const { allowed, button } = await buttons(again);
  const listed = (heading, columns, rows, options) => table(heading, allowed ? columns : columns.filter(([name]) => name !== ACTION), rows, options);
  await again();
}

// A form of text inputs with one button; `make(values)` returns the button of the action.
function form(title, fields, make) {
  const inputs = fields.map(([name, label, attributes]) => [name, label, el("input", { type: "text", ...attributes })]);
  const values = () => (inputs.every(([, , input]) => input.reportValidity()) ? Object.fromEntries(inputs.map(([name, , input]) => [name, input.value])) : null);
  const button = make(values);
  if (button === "") return "";
  return el("form", { class: "filter", "aria-label": title, submit: (event) => { event.preventDefault(); button.click(); } }, inputs.map(([, label, input]) => el("label", {}, label, input)), button);
}

export const cache = (content) => page(content, "Cache", async (button, listed, form) => {
  const [report, enabled] = await Promise.all([load("cache"), configured("CacheOptions:Enabled")]);
  const empty = enabled ? "No request for a cached response yet. Endpoints with the annotation cached are listed here." : "Responses are not cached. Set CacheOptions:Enabled, and annotate endpoints with cached.";
  return [
    el("dl", { class: "cards" }, card("Hits", number(report.hits)), card("Misses", number(report.misses)), card("Ratio", percent(report.ratio))),
    form("Invalidate by tag", [["tag", "Tag", { required: true }]], (values) => button("Invalidate tag", "invalidate-cache", values, "Invalidate all cached responses with this tag?")),
    button("Invalidate all", "invalidate-cache", { all: "true" }, "Invalidate all cached responses?"),
    listed("Endpoints", [["Endpoint", (one) => one.endpoint], measured("Hits", "hits"), measured("Misses", "misses"), measured("Ratio", "ratio", percent), [ACTION, (one) => button("Invalidate", "invalidate-cache", { endpoint: one.endpoint }, `Invalidate the cached responses of ${one.endpoint}?`)]], report.endpoints, { empty }),
    listed("Profiles", [["Profile", (name) => name], [ACTION, (name) => button("Invalidate", "invalidate-cache", { profile: name }, `Invalidate the cached responses of profile ${name}?`)]], report.profiles, { empty: "None is configured (CacheOptions:Profiles)." }),
  ];
});

export const queues = (content) => page(content, "Queues", async (button, listed, form) => {
  const report = await load("queues");
  const job = (one) => (one.state === "failed" || one.state === "cancelled" ? button("Retry", "retry-job", { id: one.id }, `Run job ${one.id} of ${one.endpoint} again?`) : one.state === "done" ? "" : button("Cancel", "cancel-job", { id: one.id }, `Cancel job ${one.id} of ${one.endpoint}?`));
  return [
    listed("Jobs", [["Endpoint", (one) => one.endpoint], ["Queue", (one) => one.queue], ["State", (one) => one.state], measured("Attempts", "attempts", shown), ["Created", (one) => time(one.created)], ["Error", (one) => one.error], ["Id", (one) => one.id], [ACTION, job]], report.jobs ?? [], part(report, "jobs", "No job is stored. Endpoints with the annotation job, and rowcall.enqueue, create them.")),
    listed("Schedules", [["Endpoint", (one) => one.endpoint], ["Last time", (one) => time(one.due)], ["State", (one) => one.state], [ACTION, (one) => button("Run now", "run-schedule", { endpoint: one.endpoint }, `Run ${one.endpoint} now?`)]], report.schedules ?? [], part(report, "schedules", "No endpoint has a schedule.")),
    form("Replay webhooks", [["topic", "Topic", { required: true, placeholder: "order.*" }], ["since", "Published since (UTC)", { required: true, type: "datetime-local" }], ["subscriber", "Subscriber, or empty", {}]], (values) => button("Replay", "replay-webhooks", values, "Deliver all of these messages again?")),
    listed("Webhook deliveries", [["Subscriber", (one) => one.subscriber], ["State", (one) => one.state], measured("Attempts", "attempts", shown), measured("Status", "status", shown), ["Error", (one) => one.error], ["Message", (one) => one.message], [ACTION, (one) => (one.state === "dead" ? button("Retry", "retry-delivery", { message: one.message, subscriber: one.subscriber }, `Deliver ${one.message} to ${one.subscriber} again?`) : "")]], report.deliveries ?? [], part(report, "deliveries", "No message was sent to a subscriber.")),
    table("Webhook subscribers", [["Name", (one) => one.name], ["Topics", (one) => one.topics.join(", ")], ["Active", (one) => one.active], measured("Failures", "failures", shown), ["Paused until", (one) => time(one.pausedUntil)]], report.subscribers ?? [], part(report, "subscribers", "No service subscribes to messages.")),
  ];
});

export async function sessions(content, parameters) {
  const subject = parameters.subject ?? "";
  const input = el("input", { type: "search", value: subject });
  const search = el("form", { class: "filter", submit: (event) => { event.preventDefault(); location.hash = `sessions?${new URLSearchParams({ subject: input.value })}`; } }, el("label", {}, "User id", input), el("button", { type: "submit" }, "Show"));
  await page(content, "Sessions and keys", async (button, listed) => {
    const report = await load("sessions", { subject });
    const found = subject === "" ? [] : [
      listed(`One-time tokens of ${subject}`, [["Purpose", (one) => one.purpose], ["Tenant", (one) => one.tenant], ["Created", (one) => time(one.created)], ["Expires", (one) => time(one.expires)], ["Used", (one) => time(one.used)], [ACTION, (one) => (one.used ? "" : button("Revoke", "revoke-tokens", { subject, purpose: one.purpose, tenant: one.tenant ?? "" }, `Revoke the tokens of ${subject} for ${one.purpose}${one.tenant ? ` of the tenant ${one.tenant}` : ", of all tenants"}?`))]], report.tokens ?? [], part(report, "tokens", "None.")),
      listed(`Remembered devices of ${subject}`, [["Device", (one) => one.description], ["Created", (one) => time(one.created)], ["Expires", (one) => time(one.expires)], [ACTION, (one) => button("Revoke", "revoke-devices", { subject, id: one.id }, `Revoke this device of ${subject}?`)]], report.devices ?? [], part(report, "devices", "None.")),
    ];
    return [
      listed("Operators", [["Signed in by", (one) => one.operator], ["Address", (one) => one.address], ["Since", (one) => moment(one.began)], ["Ends in", (one) => duration(Math.max(0, one.expires - Date.now() / 1000))], [ACTION, (one) => button("End", "end-session", { id: one.id }, "End this session?")]], report.operators),
      table("Key ring", [["Key", (one) => one.id], ["Active from", (one) => moment(one.activated)], ["Expires", (one) => moment(one.expires)]], report.keys),
      el("h3", {}, "A user"),
      el("p", { class: "soft" }, "Shows unused one-time tokens and remembered devices. Sessions of users are cookies and tokens, which the service does not store."),
      search,
      ...found,
    ];
  });
}
