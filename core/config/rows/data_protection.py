"""Keys of the key ring for cookies, opaque tokens, antiforgery tokens and encrypted values (protection-1)."""

from rowcall.core.sections.keys import Key, choice, flag, integer, section, text

_P = "DataProtection:"

ROWS: tuple[Key, ...] = (
    section(
        "DataProtection", "The key ring that protects cookies, bearer tokens, antiforgery tokens and encrypted values."
    ),
    flag(_P + "Enabled", True, "Use a key ring."),
    text(
        _P + "CustomApplicationName",
        None,
        "Isolation boundary: applications with another name cannot decrypt the values. null: ApplicationName.",
    ),
    integer(
        _P + "DefaultKeyLifetimeDays",
        90,
        "Days after which a new key is used for encryption; old keys still decrypt.",
        minimum=1,
    ),
    choice(
        _P + "Storage",
        "Default FileSystem Database",
        "Default",
        "Storage of keys. Default: only in memory, so that they are lost at a restart.",
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
        "Command for storage Database that stores a key: $1 name, $2 content, both text.",
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
        "Signature of protected values with a CBC cipher. null: HMACSHA256.",
    ),
    choice(
        _P + "KeyEncryption",
        "None Certificate Dpapi",
        "None",
        "Encryption of stored keys. Dpapi exists on Windows only.",
    ),
    text(_P + "CertificatePath", None, "PFX file for KeyEncryption Certificate."),
    text(_P + "CertificatePassword", None, "Password of that file.", secret=True),
    flag(_P + "DpapiLocalMachine", False, "Bind Dpapi to the machine rather than to the user."),
)
