"""Keys of forwarded headers, with which a reverse proxy describes the client (server-6 to server-8, server-10)."""

from rowcall.core.config.keys import Key, flag, integer, section, texts

ROWS: tuple[Key, ...] = (
    section("ForwardedHeaders", "What a proxy in front says about the client."),
    flag("ForwardedHeaders:Enabled", False, "Believe X-Forwarded-For, -Proto and -Host."),
    integer("ForwardedHeaders:ForwardLimit", 1, "Entries of X-Forwarded-For to believe. null is all.", nullable=True),
    texts(
        "ForwardedHeaders:KnownProxies",
        (),
        "Addresses that are believed. With KnownNetworks empty too: a proxy on this host. One that cannot be read "
        "stops the start.",
    ),
    texts("ForwardedHeaders:KnownNetworks", (), "Networks that are believed, such as `10.0.0.0/8`."),
    flag("ForwardedHeaders:TrustAllProxies", False, "Believe whoever connects. Only where nobody else can connect."),
    texts(
        "ForwardedHeaders:AllowedHosts",
        (),
        "Hosts that X-Forwarded-Host may name, without ports; `*.zone.example` is those below. An empty list is any.",
    ),
)
