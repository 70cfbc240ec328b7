"""Keys of security headers (browsers-1, browsers-2)."""

from rowcall.core.sections.keys import Key, flag, section, text

_P = "SecurityHeaders:"


def _header(name: str, header: str, default: str | None, remark: str = "") -> Key:
    return text(_P + name, default, f"Value of {header}. null: not sent.{remark}", nullable=True)


ROWS: tuple[Key, ...] = (
    section("SecurityHeaders", "Security headers of every response."),
    flag(_P + "Enabled", False, "Send security headers."),
    _header("XContentTypeOptions", "X-Content-Type-Options", "nosniff"),
    _header("XFrameOptions", "X-Frame-Options", "DENY", " If Antiforgery is enabled, it sends its own."),
    _header("ReferrerPolicy", "Referrer-Policy", "strict-origin-when-cross-origin"),
    _header("ContentSecurityPolicy", "Content-Security-Policy", None),
    _header("PermissionsPolicy", "Permissions-Policy", None),
    _header("CrossOriginOpenerPolicy", "Cross-Origin-Opener-Policy", None),
    _header("CrossOriginEmbedderPolicy", "Cross-Origin-Embedder-Policy", None),
    _header("CrossOriginResourcePolicy", "Cross-Origin-Resource-Policy", None),
)
