"""Keys of the rules for new passwords."""

from rowcall.core.sections.keys import Key, integer, section, text, texts

_P = "Auth:Passwords:"

ROWS: tuple[Key, ...] = (
    section("Auth:Passwords", "Rules for new passwords: values of parameters of which a hash is made."),
    integer(
        _P + "MinimumLength", 0, "Fewest characters. 0: no minimum. NIST recommends 15, or 8 with a second factor."
    ),
    integer(_P + "MaximumLength", 0, "Most characters: 64 or more. 0: no maximum."),
    text(
        _P + "BreachedFile",
        None,
        "File of SHA-1 hashes of passwords, one in each line as `HASH:COUNT`, sorted by hash, as haveibeenpwned.com "
        "offers it. These passwords are refused.",
    ),
    text(
        _P + "WordsFile",
        None,
        "File of passwords, one in each line, without regard to case, of 10 MB at most. They are refused.",
    ),
    texts(
        _P + "NotContaining",
        (),
        "Parameters, such as `_email` or `name`, whose value must not be part of a password. If there is one, the name "
        "of the signed-in user must not be part of it either.",
    ),
)
