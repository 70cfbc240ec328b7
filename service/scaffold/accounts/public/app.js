// The page of the accounts: no framework, all texts by textContent.

const find = id => document.getElementById(id);
const show = (id, on = true) => { find(id).hidden = !on; };
const say = text => { find("message").textContent = text; };

let pendingToken = null;   // of a sign-in that waits for the second factor
let tokenOfMail = null;    // {kind, token} of the link in a mail

async function send(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: body === undefined ? {} : { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  return { status: response.status, ok: response.ok, body: isJson && text ? JSON.parse(text) : text };
}

const post = (path, body = {}) => send("POST", path, body);
const get = path => send("GET", path);

function problem(answer) {
  const { errors, detail, title } = answer.body ?? {};
  return errors?.[0]?.message ?? detail ?? title ?? `status ${answer.status}`;
}

// Runs an action; its problem is shown, and null returned. A request for the second factor opens its form.
async function act(action, done) {
  say("");
  const answer = await action;
  if (answer.body?.type === "second_factor_required") {
    pendingToken = answer.body.token;
    show("signed-out", false);
    show("second-factor");
    show("second-passkey", answer.body.methods.includes("passkey"));
    say("Prove your second factor.");
    return null;
  }
  if (answer.body?.type === "insufficient_user_authentication") {
    say("Sign in again first, with your second factor if you have one.");
    return null;
  }
  if (!answer.ok) {
    say(problem(answer));
    return null;
  }
  if (done) say(done);
  return answer;
}

function onSubmit(id, action) {
  find(id).addEventListener("submit", async event => {
    event.preventDefault();
    const form = event.target;
    await action(Object.fromEntries(new FormData(form)), form);
  });
}

const onClick = (id, action) => find(id).addEventListener("click", action);

function list(id, texts) {
  find(id).replaceChildren(...texts.map(({ text, button, action }) => {
    const item = document.createElement("li");
    item.textContent = `${text} `;
    if (action) {
      const made = document.createElement("button");
      made.textContent = button;
      made.addEventListener("click", action);
      item.append(made);
    }
    return item;
  }));
}

// --- what is shown -------------------------------------------------------------------------------------------------

async function refresh() {
  const me = await get("/api/me");
  show("second-factor", false);
  show("choose-password", tokenOfMail !== null);
  show("signed-out", !me.ok && tokenOfMail === null);
  show("signed-in", me.ok);
  if (!me.ok) return;
  find("name").textContent = me.body.name;
  find("email").textContent = me.body.email;
  find("passkeys").textContent = `${me.body.passkeys} passkeys`;
  show("administration", me.body.roles.includes("admin"));
  await Promise.all([refreshNotes(), refreshSessions(), refreshFactor()]);
  if (me.body.roles.includes("admin")) {
    const all = await get("/api/accounts");
    list("accounts", all.ok ? all.body.map(one => ({ text: `${one.email} (${one.name})` })) : [{ text: problem(all) }]);
  }
}

async function refreshNotes() {
  const notes = await get("/api/notes");
  list("notes", notes.body.map(note => ({
    text: note.text,
    button: "Remove",
    action: async () => { await send("DELETE", `/api/notes?id=${note.id}`); await refreshNotes(); },
  })));
}

async function refreshSessions() {
  const sessions = await get("/api/sessions");
  list("sessions", sessions.body.map(session => ({
    text: `${session.current ? "This browser" : "Another browser"}, since ${new Date(session.since).toLocaleString()}`,
    button: "End",
    action: async () => { await post("/api/sessions/end", { id: session.id }); await refresh(); },
  })));
}

async function refreshFactor() {
  const { totp, recoveryCodes } = (await get("/api/second-factor")).body;
  find("factor-state").textContent = totp ? `An authenticator app is set up; ${recoveryCodes} recovery codes are left.` : "None.";
  show("set-up-app", !totp);
  show("remove-app", totp);
  show("confirm-app", false);
}

// --- sign-up and sign-in -------------------------------------------------------------------------------------------

onSubmit("sign-up", body => act(post("/api/sign-up", body), "Read your mail, and open its link."));
onSubmit("send-link", body => act(post("/api/link", body), "If the address has an account, a mail is on its way."));
onSubmit("forgotten", body => act(post("/api/password/forgotten", body), "If the address has an account, a mail is on its way."));

onSubmit("sign-in", async (body, form) => {
  const answer = await act(post("/api/sign-in", body));
  form.reset();
  if (answer) await refresh();
  else if (pendingToken === null && find("message").textContent === "Unauthorized") say("E-mail or password is wrong.");
});

onSubmit("choose-password", async ({ password }, form) => {
  const path = tokenOfMail.kind === "reset" ? "/api/password/reset" : "/api/sign-up/confirm";
  const answer = await act(post(path, { token: tokenOfMail.token, password }), "Your password is saved. Sign in.");
  form.reset();
  if (answer) tokenOfMail = null;
  await refresh();
});

onSubmit("second-factor", async ({ code, remember }, form) => {
  const proof = /^[\d\s]{6,8}$/.test(code) ? { code } : { recoveryCode: code };
  const body = { ...proof, token: pendingToken, ...(remember ? { remember: true } : {}) };
  const answer = await act(post("/api/second-factor/verify", body));
  form.reset();
  if (answer) { pendingToken = null; await refresh(); }
});

onClick("sign-out", async () => { await post("/api/sign-out"); await refresh(); });
onClick("end-all", async () => { await post("/api/sessions/end"); await refresh(); });

// --- second factor -------------------------------------------------------------------------------------------------

onClick("set-up-app", async () => {
  const answer = await act(post("/api/second-factor/totp"));
  if (!answer) return;
  find("qr").src = `data:image/svg+xml,${encodeURIComponent(answer.body.qr)}`;
  find("secret").textContent = answer.body.secret;
  show("confirm-app");
});

onSubmit("confirm-app", async ({ code }, form) => {
  const answer = await act(post("/api/second-factor/totp/confirm", { code }), "Keep the recovery codes in a safe place.");
  form.reset();
  if (!answer) return;
  find("recovery-codes").textContent = answer.body.recoveryCodes.join("\n");
  await refreshFactor();
});

onSubmit("remove-app", async ({ code }, form) => {
  const proof = /^[\d\s]{6,8}$/.test(code) ? { code } : { recoveryCode: code };
  await act(post("/api/second-factor/remove", proof), "The second factor is removed.");
  form.reset();
  find("recovery-codes").textContent = "";
  await refreshFactor();
});

// --- passkeys ------------------------------------------------------------------------------------------------------

async function usePasskey(more = {}) {
  const options = (await post("/api/passkey/login/options")).body;
  const key = (await navigator.credentials.get({
    publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })).toJSON();
  const answer = await act(post("/api/passkey/login", {
    challengeId: options.challengeId, credentialId: key.id, userHandle: key.response.userHandle,
    authenticatorData: key.response.authenticatorData, clientDataJSON: key.response.clientDataJSON,
    signature: key.response.signature, ...more }));
  if (answer) { pendingToken = null; await refresh(); }
}

onClick("use-passkey", () => usePasskey());
onClick("second-passkey", () => usePasskey({ secondFactorToken: pendingToken }));

onClick("add-passkey", async () => {
  const answer = await act(post("/api/passkey/add/options"));
  if (!answer) return;
  const options = answer.body;
  const key = (await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })).toJSON();
  await act(post("/api/passkey/add", {
    challengeId: options.challengeId, userContext: options.userContext, credentialId: key.id,
    attestationObject: key.response.attestationObject, clientDataJSON: key.response.clientDataJSON,
    transports: key.response.transports }), "The passkey is stored.");
  await refresh();
});

// --- account -------------------------------------------------------------------------------------------------------

onSubmit("add-note", async (body, form) => {
  await act(post("/api/notes", body));
  form.reset();
  await refreshNotes();
});

onClick("delete-account", async () => {
  if (!confirm("Delete the account and all its data?")) return;
  const answer = await act(post("/api/account/delete"), "The account is deleted.");
  if (answer) await refresh();
});

// --- links in mails ------------------------------------------------------------------------------------------------

async function open() {
  const [, kind, token] = location.hash.match(/^#(confirm|reset|enter)=(\w+)$/) ?? [];
  // The token must not stay in the history of the browser.
  if (token) history.replaceState(null, "", "/");
  if (kind === "enter") {
    await act(post("/api/enter", { token }));
    if (pendingToken !== null) return;
  } else if (token) {
    tokenOfMail = { kind, token };
  }
  await refresh();
}

const provider = await fetch("/signin-github", { method: "HEAD" });
show("use-github", provider.ok);
addEventListener("hashchange", open);
await open();
