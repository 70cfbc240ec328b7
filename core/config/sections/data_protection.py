"""Keys of the key ring for cookies, opaque tokens, antiforgery tokens and encrypted values (protection-1)."""

from __future__ import annotations

from rowcall.core.sections.declaration import choice, flag, integer, section, text


@section(
    "DataProtection", "The key ring that protects cookies, bearer tokens, antiforgery tokens and encrypted values."
)
class DataProtection:
    enabled = flag("Enabled", True, "Use a key ring.")
    custom_application_name = text(
        "CustomApplicationName",
        None,
        "Isolation boundary: applications with another name cannot decrypt the values. null: ApplicationName.",
    )
    default_key_lifetime_days = integer(
        "DefaultKeyLifetimeDays",
        90,
        "Days after which a new key is used for encryption; old keys still decrypt.",
        minimum=1,
    )
    storage = choice(
        "Storage",
        "Default FileSystem Database",
        "Default",
        "Storage of keys. Default: only in memory, so that they are lost at a restart.",
    )
    file_system_path = text("FileSystemPath", "./data-protection-keys", "Folder of the keys with storage FileSystem.")
    get_all_elements_command = text(
        "GetAllElementsCommand",
        "select get_data_protection_keys()",
        "Query for storage Database: one text column, one row for each stored key.",
    )
    store_element_command = text(
        "StoreElementCommand",
        "call store_data_protection_keys($1,$2)",
        "Command for storage Database that stores a key: $1 name, $2 content, both text.",
    )
    encryption_algorithm = choice(
        "EncryptionAlgorithm",
        "AES_128_CBC AES_192_CBC AES_256_CBC AES_128_GCM AES_192_GCM AES_256_GCM",
        None,
        "Cipher of protected values. null is AES-256-GCM.",
    )
    validation_algorithm = choice(
        "ValidationAlgorithm",
        "HMACSHA256 HMACSHA512",
        None,
        "Signature of protected values with a CBC cipher. null: HMACSHA256.",
    )
    key_encryption = choice(
        "KeyEncryption", "None Certificate Dpapi", "None", "Encryption of stored keys. Dpapi exists on Windows only."
    )
    certificate_path = text("CertificatePath", None, "PFX file for KeyEncryption Certificate.")
    certificate_password = text("CertificatePassword", None, "Password of that file.", secret=True)
    dpapi_local_machine = flag("DpapiLocalMachine", False, "Bind Dpapi to the machine rather than to the user.")
