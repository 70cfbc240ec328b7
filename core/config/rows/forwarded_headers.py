"""Keys of forwarded headers, with which a reverse proxy describes the client (server-6 to server-8, server-10)."""

from rowcall.core.sections.keys import Key, flag, integer, section, texts

ROWS: tuple[Key, ...] = (
    section("ForwardedHeaders", "Headers with which a reverse proxy describes the client."),
    flag("ForwardedHeaders:Enabled", False, "Trust X-Forwarded-For, -Proto and -Host."),
    integer(
        "ForwardedHeaders:ForwardLimit",
        1,
        "Number of trusted entries of X-Forwarded-For. null: all.",
        nullable=True,
        minimum=1,
    ),
    texts(
        "ForwardedHeaders:KnownProxies",
        (),
        "Addresses of trusted proxies. If KnownNetworks is empty too: a proxy on this host. An invalid address "
        "prevents the start.",
    ),
    texts("ForwardedHeaders:KnownNetworks", (), "Networks of trusted proxies, such as `10.0.0.0/8`."),
    flag(
        "ForwardedHeaders:TrustAllProxies",
        False,
        "Trust the headers of every client. Use it only if no other client than the proxy can connect.",
    ),
    texts(
        "ForwardedHeaders:AllowedHosts",
        (),
        "Hosts that X-Forwarded-Host may name, without ports; `*.zone.example`: its subdomains. An empty list: any.",
    ),
)
