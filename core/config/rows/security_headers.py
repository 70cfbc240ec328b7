"""Keys of security headers (browsers-1, browsers-2)."""

from rowcall.core.config.keys import Key, flag, section, text

_P = "SecurityHeaders:"


def _header(name: str, header: str, default: str | None, remark: str = "") -> Key:
    return text(_P + name, default, f"Value of {header}. null sends none.{remark}", nullable=True)


ROWS: tuple[Key, ...] = (
    section("SecurityHeaders", "Headers of every answer that tell browsers to be careful."),
    flag(_P + "Enabled", False, "Send them."),
    _header("XContentTypeOptions", "X-Content-Type-Options", "nosniff"),
    _header("XFrameOptions", "X-Frame-Options", "DENY", " Anti-forgery, where it is on, sends its own."),
    _header("ReferrerPolicy", "Referrer-Policy", "strict-origin-when-cross-origin"),
    _header("ContentSecurityPolicy", "Content-Security-Policy", None),
    _header("PermissionsPolicy", "Permissions-Policy", None),
    _header("CrossOriginOpenerPolicy", "Cross-Origin-Opener-Policy", None),
    _header("CrossOriginEmbedderPolicy", "Cross-Origin-Embedder-Policy", None),
    _header("CrossOriginResourcePolicy", "Cross-Origin-Resource-Policy", None),
)
