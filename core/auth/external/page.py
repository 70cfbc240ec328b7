"""The page of a sign-in, which is also the OAuth callback, and its script (external-sign-in-2, external-sign-in-3).

The script uses sessionStorage in the same way as comparable services. After the sign-in, the browser is only sent to
this origin: the script compares the URL after the browser has parsed it, and goes to an absolute URL of its own origin
with the parsed path, so another host cannot be disguised by its spelling. A path alone would not do: `//host/` is the
path of one URL and the host of another.
"""

from __future__ import annotations

import html
import re

import orjson

from rowcall.core.auth.external.options import ExternalOptions, Provider

ANALYTICS = """{
  timestamp: new Date().toISOString(),
  timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  screen: { width: screen.width, height: screen.height, colorDepth: screen.colorDepth,
    pixelRatio: devicePixelRatio, orientation: screen.orientation ? screen.orientation.type : null },
  browser: { userAgent: navigator.userAgent, language: navigator.language, languages: navigator.languages,
    cookiesEnabled: navigator.cookieEnabled, doNotTrack: navigator.doNotTrack, onLine: navigator.onLine,
    platform: navigator.platform, vendor: navigator.vendor },
  memory: { deviceMemory: navigator.deviceMemory, hardwareConcurrency: navigator.hardwareConcurrency },
  window: { innerWidth: innerWidth, innerHeight: innerHeight, outerWidth: outerWidth, outerHeight: outerHeight },
  location: { href: location.origin + location.pathname, hostname: location.hostname, pathname: location.pathname,
    protocol: location.protocol, referrer: document.referrer },
  performance: { timeOrigin: performance.timeOrigin }
}"""
"""The default expression for analytics."""

_SCRIPT = """(async () => {
  const options = %s;
  const store = sessionStorage;
  const query = new URLSearchParams(location.search);
  const path = location.pathname;
  const home = text => {
    if (!text) return null;  // an empty text is this page, which would begin another sign-in
    try {
      const url = new URL(text, location.origin);
      // A blob: URL has the origin of its creator, and a path that does not begin with a slash.
      const here = url.origin === location.origin && url.protocol === location.protocol;
      return here ? url.origin + url.pathname + url.search + url.hash : null;
    } catch { return null; }
  };
  const taken = key => { const text = store.getItem(key); store.removeItem(key); return text; };
  const finish = (status, message) => {
    store.setItem(options.statusKey, status);
    store.setItem(options.messageKey, message);
    const to = home(taken("_return_to")) || home(options.returnTo) || "/";
    if (taken("__external_popup")) {
      const notice = { type: "external-sign-in", provider: options.provider, status: Number(status), message };
      if (window.opener) window.opener.postMessage(notice, location.origin);
      else new BroadcastChannel("external-sign-in").postMessage(notice);
      window.close();
      return;
    }
    location.replace(to);
  };
  if (!query.has("error") && !query.has("state")) {
    const to = query.get(options.returnKey) && home(query.get(options.returnKey));
    if (to) store.setItem("_return_to", to); else store.removeItem("_return_to");
    if (query.get("display") === "popup") store.setItem("__external_popup", "1");
    else store.removeItem("__external_popup");
    query.delete(options.returnKey);
    query.delete("display");
    store.setItem("__external_state", options.state);
    store.setItem("__external_params", JSON.stringify(Object.fromEntries(query)));
    location.replace(options.authUrl);
    return;
  }
  const stored = JSON.parse(taken("__external_params") || "{}");
  const state = taken("__external_state");
  history.replaceState(null, "", path);
  if (!state || state !== query.get("state")) {
    finish("503", query.get("error") || "Invalid state");
    return;
  }
  if (query.has("error")) {
    finish("503", query.get("error"));
    return;
  }
  const analytics = %s;
  const asked = analytics ? "?analyticsData=" + encodeURIComponent(JSON.stringify(analytics)) : "";
  try {
    const response = await fetch(path + asked, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...stored, ...Object.fromEntries(query) })
    });
    finish(String(response.status), await response.text());
  } catch (error) {
    finish("503", String(error));
  }
})();
"""
_ELEMENT = "external-sign-in"

_PLACE = re.compile(r"\{([01])\}")


def sign_in_page(
    options: ExternalOptions,
    provider: Provider,
    auth_url: str | None,
    state: str | None,
    script_path: str | None = None,
) -> bytes:
    """Return the HTML of the page.

    auth_url, state: of the sign-in that begins; None in an OAuth callback. script_path: URL path of `sign_in_script`;
    None: the script is inline.
    """
    settings = {
        "provider": provider.key,
        "authUrl": auth_url,
        "state": state,
        "statusKey": options.status_key,
        "messageKey": options.message_key,
        "returnTo": options.return_to,
        "returnKey": options.return_key,
    }
    settings_json = _in_script(orjson.dumps(settings).decode())
    if script_path is None:
        script = f"<script>\n{_SCRIPT % (settings_json, _expression(options.analytics))}</script>"
    else:
        source = html.escape(script_path)
        script = (
            f'<script type="application/json" id="{_ELEMENT}">{settings_json}</script><script src="{source}"></script>'
        )
    values = (html.escape(provider.key), script)
    return _PLACE.sub(lambda match: values[int(match[1])], options.template).encode()


def sign_in_script(options: ExternalOptions) -> bytes:
    """Return the script for all pages, for a Content-Security-Policy that forbids inline scripts."""
    settings_expression = f'JSON.parse(document.getElementById("{_ELEMENT}").textContent)'
    return (_SCRIPT % (settings_expression, _expression(options.analytics))).encode()


def _in_script(text: str) -> str:
    """Escape JSON so that it neither ends the script element nor begins a comment in it."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _expression(analytics: str | None) -> str:
    """Return the JavaScript expression of the analytics: that of the operator, which is used as it is, or `null`."""
    return f"({analytics})" if analytics else "null"
