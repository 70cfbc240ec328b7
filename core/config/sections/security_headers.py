"""Keys of security headers (browsers-1, browsers-2)."""

from __future__ import annotations

from rowcall.core.sections.declaration import flag, section, text


@section("SecurityHeaders", "Security headers of every response.")
class SecurityHeaders:
    enabled = flag("Enabled", False, "Send security headers.")
    x_content_type_options: str | None = text(
        "XContentTypeOptions", "nosniff", "Value of X-Content-Type-Options. null: not sent.", nullable=True
    )
    x_frame_options: str | None = text(
        "XFrameOptions",
        "DENY",
        "Value of X-Frame-Options. null: not sent. If Antiforgery is enabled, it sends its own.",
        nullable=True,
    )
    referrer_policy: str | None = text(
        "ReferrerPolicy", "strict-origin-when-cross-origin", "Value of Referrer-Policy. null: not sent.", nullable=True
    )
    content_security_policy: str | None = text(
        "ContentSecurityPolicy", None, "Value of Content-Security-Policy. null: not sent."
    )
    permissions_policy: str | None = text("PermissionsPolicy", None, "Value of Permissions-Policy. null: not sent.")
    cross_origin_opener_policy: str | None = text(
        "CrossOriginOpenerPolicy", None, "Value of Cross-Origin-Opener-Policy. null: not sent."
    )
    cross_origin_embedder_policy: str | None = text(
        "CrossOriginEmbedderPolicy", None, "Value of Cross-Origin-Embedder-Policy. null: not sent."
    )
    cross_origin_resource_policy: str | None = text(
        "CrossOriginResourcePolicy", None, "Value of Cross-Origin-Resource-Policy. null: not sent."
    )
