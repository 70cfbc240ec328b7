"""Keys of the key ring for cookies, opaque tokens, antiforgery tokens and encrypted values (protection-1)."""

from __future__ import annotations

from rowcall.core.protection.key_ring import DEFAULT_ALGORITHM, DEFAULT_VALIDATION
from rowcall.core.sections.declaration import choice, flag, integer, part, section, text


def _days(number: int) -> float:
    return number * 86_400.0


@section("DataProtection")
class KeyTable:
    """SQL commands that read and store keys if `Storage` is Database."""

    read: str = text(
        "GetAllElementsCommand",
        "select get_data_protection_keys()",
        "Query for storage Database: one text column, one row for each stored key.",
    )
    store: str = text(
        "StoreElementCommand",
        "call store_data_protection_keys($1,$2)",
        "Command for storage Database that stores a key: $1 name, $2 content, both text.",
    )


@section("DataProtection")
class KeyCertificate:
    path: str | None = text("CertificatePath", None, "PFX file for KeyEncryption Certificate.")
    password: str | None = text("CertificatePassword", None, "Password of that file.", secret=True)


@section(
    "DataProtection", "The key ring that protects cookies, bearer tokens, antiforgery tokens and encrypted values."
)
class DataProtection:
    enabled: bool = flag("Enabled", True, "Use a key ring.")
    application: str | None = text(
        "CustomApplicationName",
        None,
        "Isolation boundary: applications with another name cannot decrypt the values. null: ApplicationName.",
    )
    lifetime: float = integer(
        "DefaultKeyLifetimeDays",
        90,
        "Days after which a new key is used for encryption; old keys still decrypt.",
        minimum=1,
        convert=_days,
    )
    """Seconds for which a key protects."""
    storage: str = choice(
        "Storage",
        "Default FileSystem Database",
        "Default",
        "Storage of keys. Default: only in memory, so that they are lost at a restart.",
    )
    folder: str | None = text(
        "FileSystemPath", "./data-protection-keys", "Folder of the keys with storage FileSystem.", empty=True
    )
    table = part(KeyTable)
    algorithm: str = choice(
        "EncryptionAlgorithm",
        "AES_128_CBC AES_192_CBC AES_256_CBC AES_128_GCM AES_192_GCM AES_256_GCM",
        None,
        "Cipher of protected values. null is AES-256-GCM.",
        convert=lambda word: word or DEFAULT_ALGORITHM,
    )
    validation: str = choice(
        "ValidationAlgorithm",
        "HMACSHA256 HMACSHA512",
        None,
        "Signature of protected values with a CBC cipher. null: HMACSHA256.",
        convert=lambda word: word or DEFAULT_VALIDATION,
    )
    key_encryption: str = choice(
        "KeyEncryption", "None Certificate Dpapi", "None", "Encryption of stored keys. Dpapi exists on Windows only."
    )
    certificate = part(KeyCertificate)
    dpapi_local_machine = flag("DpapiLocalMachine", False, "Bind Dpapi to the machine rather than to the user.")
