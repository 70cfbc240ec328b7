// Starts the viewer of the API reference, with three additions: event streams are shown live, the access token of a sign-in is
// used by further requests, and those that change something get an antiforgery token. A session by cookie is sent by the browser.
const place = document.getElementById("reference");
const MOST = 200000;

// Returns the headers of the credentials that were entered by Authorize.
function credentials(system) {
  const headers = {};
  for (const one of Object.values(system.authSelectors.authorized()?.toJS() ?? {})) {
    const { type, scheme, in: where, name } = one.schema;
    if (type === "http" && scheme === "bearer") headers.authorization = `Bearer ${one.value}`;
    if (type === "http" && scheme === "basic") headers.authorization = `Basic ${btoa(`${one.value.username}:${one.value.password}`)}`;
    if (type === "apiKey" && where === "header") headers[name] = one.value;
  }
  return headers;
}

const streams = (system) => {
  const { React } = system;
  const h = React.createElement;

  class EventStream extends React.Component {
    state = { text: "", note: "" };

    componentWillUnmount() {
      this.controller?.abort();
    }

    close() {
      this.controller?.abort();
      this.controller = null;
      this.setState({ note: "closed" });
    }

    async open() {
      const controller = new AbortController();
      this.controller = controller;
      this.setState({ text: "", note: "opening" });
      try {
        const response = await fetch(this.props.path, { headers: { accept: "text/event-stream", ...credentials(system) }, signal: controller.signal });
        this.setState({ note: `status ${response.status}` });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          const text = part.value;
          this.setState((state) => ({ text: (state.text + text).slice(-MOST) }));
        }
        this.setState((state) => ({ note: `${state.note}, ended` }));
      } catch (error) {
        if (!controller.signal.aborted) this.setState({ note: error.message });
      }
      if (this.controller === controller) this.controller = null;
      this.forceUpdate();
    }

    render() {
      const { text, note } = this.state;
      return h("div", { className: "opblock-section" },
        h("div", { className: "opblock-section-header" }, h("h4", {}, `Events: GET ${this.props.path}`),
          h("button", { className: "btn", type: "button", onClick: () => (this.controller ? this.close() : this.open()) }, this.controller ? "Close the stream" : "Open the stream")),
        h("p", { role: "status", style: { margin: "0 20px" } }, note),
        text && h("pre", { role: "log", "aria-label": "Events", tabIndex: 0, style: { margin: "10px 20px", maxHeight: "20rem", overflow: "auto" } }, text));
    }
  }

  // A value in the path of a stream selects nothing.
  const pathOf = (props) => system.specSelectors.specJson().getIn(["paths", props.path, props.method, "x-event-stream"])?.replace(/\{[^}]*\}/g, "-");

  return { wrapComponents: { responses: (Original) => (props) => {
    const path = pathOf(props);
    return h(React.Fragment, {}, path ? h(EventStream, { path }) : null, h(Original, props));
  } } };
};

// Uses the access token of a sign-in for the schemes with bearer tokens.
function takeToken(response) {
  if (response.status === 200 && /^application\/json/.test(response.headers?.["content-type"] ?? "")) {
    const token = response.obj?.accessToken ?? response.obj?.access_token;
    const schemes = Object.entries(ui.specSelectors.specJson().getIn(["components", "securitySchemes"])?.toJS() ?? {});
    if (typeof token === "string") for (const [name, one] of schemes) if (one.type === "http" && one.scheme === "bearer") ui.preauthorizeApiKey(name, token);
  }
  return response;
}

// Adds an antiforgery token, which is bound to the session, to a request that changes something.
async function addToken(request) {
  if (!place.dataset.antiforgery || request.loadSpec || ["GET", "HEAD", "OPTIONS", "QUERY"].includes((request.method ?? "GET").toUpperCase())) return request;
  const response = await fetch(place.dataset.antiforgery, { headers: credentials(ui.getSystem()) });
  if (!response.ok) return request;
  const { headerName, token } = await response.json();
  request.headers[headerName] = token;
  return request;
}

const ui = SwaggerUIBundle({ url: place.dataset.document, domNode: place, deepLinking: true, tryItOutEnabled: true, plugins: [streams], requestInterceptor: addToken, responseInterceptor: takeToken });
