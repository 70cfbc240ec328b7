"""Keys of the key ring for cookies, opaque tokens, antiforgery tokens and encrypted values (protection-1)."""

from rowcall.core.config.keys import Key, choice, flag, integer, section, text

_P = "DataProtection:"

ROWS: tuple[Key, ...] = (
    section("DataProtection", "The key ring that protects cookies, bearer tokens, anti-forgery tokens and values."),
    flag(_P + "Enabled", True, "Keep a key ring."),
    text(
        _P + "CustomApplicationName",
        None,
        "Name that separates one application's values from another's. null takes ApplicationName.",
    ),
    integer(_P + "DefaultKeyLifetimeDays", 90, "Days after which a new key takes over; old keys still decrypt."),
    choice(
        _P + "Storage",
        "Default FileSystem Database",
        "Default",
        "Where keys survive a restart. Default keeps them in memory only.",
    ),
    text(_P + "FileSystemPath", "./data-protection-keys", "Folder of the keys with storage FileSystem."),
    text(
        _P + "GetAllElementsCommand",
        "select get_data_protection_keys()",
        "Query for storage Database: one text column, one row for each stored key.",
    ),
    text(
        _P + "StoreElementCommand",
        "call store_data_protection_keys($1,$2)",
        "Command for storage Database that keeps a key: $1 is its name, $2 its content, both text.",
    ),
    choice(
        _P + "EncryptionAlgorithm",
        "AES_128_CBC AES_192_CBC AES_256_CBC AES_128_GCM AES_192_GCM AES_256_GCM",
        None,
        "Cipher of protected values. null is AES-256-GCM.",
    ),
    choice(
        _P + "ValidationAlgorithm",
        "HMACSHA256 HMACSHA512",
        None,
        "Signature of them with a CBC cipher. null is HMACSHA256.",
    ),
    choice(
        _P + "KeyEncryption",
        "None Certificate Dpapi",
        "None",
        "How stored keys are themselves encrypted. Dpapi exists on Windows only.",
    ),
    text(_P + "CertificatePath", None, "PFX file for KeyEncryption Certificate."),
    text(_P + "CertificatePassword", None, "Password of that file.", secret=True),
    flag(_P + "DpapiLocalMachine", False, "Bind Dpapi to the machine rather than to the user."),
)
