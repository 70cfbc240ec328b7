"""Keys of response compression."""

from rowcall.core.sections.keys import Key, choice, flag, section, texts

_TYPES = (
    "text/plain",
    "text/css",
    "application/javascript",
    "text/javascript",
    "text/html",
    "application/xml",
    "text/xml",
    "application/json",
    "text/json",
    "image/svg+xml",
    "font/woff",
    "font/woff2",
    "application/font-woff",
    "application/font-woff2",
)

ROWS: tuple[Key, ...] = (
    section("ResponseCompression", "Compression of responses."),
    flag("ResponseCompression:Enabled", False, "Compress responses for clients that accept it."),
    flag("ResponseCompression:EnableForHttps", False, "Compress over https too."),
    flag("ResponseCompression:UseBrotli", True, "Offer `br`, before gzip."),
    flag("ResponseCompression:UseGzipFallback", True, "Offer `gzip`."),
    choice(
        "ResponseCompression:CompressionLevel",
        "Optimal Fastest NoCompression SmallestSize",
        "Optimal",
        "Trade-off between speed and size.",
    ),
    texts("ResponseCompression:IncludeMimeTypes", _TYPES, "Media types that are compressed."),
    texts("ResponseCompression:ExcludeMimeTypes", (), "Media types that are never compressed."),
)
