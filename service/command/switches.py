"""The table of switches, from which the parser, `--help`, the hints and the shell completion derive.

This module must not import expensive modules: `rowcall --version` has to answer at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch of the command line."""

    words: tuple[str, ...]
    """Spellings on the command line (case is ignored); the last one is the name."""
    meaning: str
    """Description for `--help` and shell completion."""
    operands: tuple[str, ...] = ()
    """Operands that follow; `[NAME]` is optional."""
    run: str = ""
    """`module:function` in rowcall.service.command; empty: the switch modifies another one."""
    choices: tuple[str, ...] = ()
    """Allowed values of the operand."""
    alone: bool = False
    """The switch reads no configuration file, so a word after the operands is an error: probably a text with blanks and
    without quotes."""
    configures: bool = False
    """The operand is in place of all configuration files, so none may be given."""
    goes_with: tuple[str, ...] = ()
    """Switches of which one must be present; empty: none is required."""

    @property
    def name(self) -> str:
        """Spelling of the switch by which code refers to it, such as `--config`."""
        return self.words[-1]

    @property
    def least(self) -> int:
        """Number of operands that are not optional."""
        return sum(not operand.startswith("[") for operand in self.operands)

    @property
    def usage(self) -> str:
        """The switch with its operands, for `--help`."""
        return " ".join((f"rowcall {', '.join(self.words)}", *self.operands))


SWITCHES = (
    Switch(("-h", "/?", "--help"), "Show this text.", run="about:show_help"),
    Switch(
        ("-v", "/v", "--version"), "Show the versions of rowcall and of what it runs on.", run="about:show_versions"
    ),
    Switch(
        ("--hash",),
        "Print the hash of a password, as logins and BasicAuth:Users store it.",
        ("PASSWORD",),
        "credentials:show_hash",
        alone=True,
    ),
    Switch(
        ("--basic_auth",),
        "Print the request header for HTTP Basic.",
        ("USER", "PASSWORD"),
        "credentials:show_basic_auth",
        alone=True,
    ),
    Switch(
        ("--encrypt",),
        "Print a text as `encrypt` stores it, encrypted with the key ring of DataProtection; a missing one is created.",
        ("TEXT",),
        "catalogue.encrypting:show_encrypted",
    ),
    Switch(
        ("--init",),
        "Write a commented configuration to start from; rowcall.json unless FILE is given. Never overwrites.",
        ("[FILE]",),
        "starter:write",
        alone=True,
    ),
    Switch(
        ("new", "--new"),
        "Create the folder NAME with an application to start from: empty, or as --template says. Never overwrites.",
        ("NAME",),
        "starter:create",
        alone=True,
    ),
    Switch(
        ("--template",),
        "With --new: accounts (sign-up, passwords, second factor, passkeys …), shop or empty.",
        ("TEMPLATE",),
        choices=("accounts", "shop", "empty"),
        goes_with=("--new",),
    ),
    Switch(
        ("--config",),
        "Print the configuration in force as JSON with comments; with FILTER only what has that text in a key, its "
        "description or its value. Secrets become placeholders, which are named.",
        ("[FILTER]",),
        "configuration:show",
    ),
    Switch(
        ("--validate",),
        "Start without serving: check the configuration, the database, files and comments; the exit code is 1 for what "
        "would stop a start.",
        run="validation:validate",
    ),
    Switch(("--config-schema",), "Print a JSON Schema of the configuration.", run="configuration:show_schema"),
    Switch(
        ("--annotations",),
        "Print all annotations as JSON: name, aliases, syntax, description.",
        run="about:show_annotations",
    ),
    Switch(("--endpoints",), "Read the database and print its endpoints as JSON.", run="catalogue.endpoints:show"),
    Switch(
        ("--generate",),
        "Read the database, write clients, OpenAPI, request files and tool descriptions as configured, and end.",
        run="catalogue.generating:generate",
    ),
    Switch(
        ("--test",),
        "Run the tests written in SQL that TestRunner:FilePattern names, without serving. The exit code is 0 when all "
        "pass, 1 for failures, 2 for errors, 3 when the preparation fails, 4 when there are no tests.",
        run="testing.run:test",
    ),
    Switch(
        ("--update",), "With --test: write the responses that tests compare with as snapshots.", goes_with=("--test",)
    ),
    Switch(
        ("--audit",),
        "Read the database and report what is exposed and to whom: open endpoints, excessive rights, policies without "
        "effect, weak keys; the exit code is 1 if a finding is high.",
        run="audit:audit",
    ),
    Switch(
        ("--install",),
        "Create or update the schema rowcall in the main database, which idempotent endpoints and jobs need; with "
        "--print, print its SQL instead, for a role that may create it.",
        run="catalogue.installation:install",
    ),
    Switch(
        ("--migrate",),
        "Run the SQL files of Migrations:Folder that the main database does not have yet; with --check, list them "
        "instead: the exit code is 3 if there are any.",
        run="catalogue.migrating:migrate",
    ),
    Switch(
        ("--schedules",),
        "Read the database and print its schedules as JSON, with their next times and the outcome of the last one.",
        run="catalogue.schedules:show",
    ),
    Switch(
        ("--contract",),
        "Write the parts of the API that clients rely on to FILE, for a repository; with --check, list the changes "
        "since then: the exit code is 4 for changes that break clients, 3 for changes that may.",
        ("FILE",),
        "catalogue.contract:contract",
    ),
    Switch(
        ("--completion",),
        "Print a script that completes this command in a shell: bash, zsh or fish.",
        ("SHELL",),
        "completion:show",
        ("bash", "zsh", "fish"),
        alone=True,
    ),
    Switch(
        ("--docs",),
        "Serve the manual as a site on this machine, on port 8765 of 127.0.0.1 unless a port or HOST:PORT is given.",
        ("[ADDRESS]",),
        "manual:serve",
        alone=True,
    ),
    Switch(("--demo",), "Serve a demo database from a private PostgreSQL in ./.demo (needs rowcall[embedded])."),
    Switch(
        ("--postgrest",),
        "Serve PostgREST's interface as FILE, in PostgREST's format, and variables PGRST_… configure it; these win.",
        ("[FILE]",),
        configures=True,
    ),
    Switch(
        ("--from-postgrest",),
        "Print the configuration that is equivalent to PostgREST's FILE. Secrets become placeholders, which are named.",
        ("FILE",),
        "configuration:show_equivalent",
        alone=True,
        configures=True,
    ),
    Switch(
        ("--watch",),
        "Apply changes of .sql files, the database and configuration files while serving, as Watch:Enabled does. "
        "With --test: run tests again whenever something changes.",
    ),
    Switch(
        ("--console",),
        "Serve the console for operators on the admin listener, as Console:Enabled does; the log has its address.",
    ),
    Switch(
        ("--check",),
        "With --contract: compare with the file instead of writing it; with --migrate: list what would run.",
        goes_with=("--contract", "--migrate"),
    ),
    Switch(("--print",), "With --install: print the SQL instead of running it.", goes_with=("--install",)),
    Switch(
        ("--grant-to",),
        "With --install: allow the role of a service to use the schema, if another role installs it.",
        ("ROLE",),
        goes_with=("--install",),
    ),
    Switch(("--json",), "With --version, --validate and --audit: print JSON."),
    Switch(
        ("--strict",),
        "With --validate: warnings count as errors; with --audit: findings that are medium.",
        goes_with=("--validate", "--audit"),
    ),
)
"""All switches. If several with `run` are present, the first one in this order runs."""

OPTIONAL = ("-o", "--optional")
_BY_WORD = {word: switch for switch in SWITCHES for word in switch.words}


@dataclass(frozen=True, slots=True)
class File:
    """A configuration file. optional: it may be missing."""

    path: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parsed command line."""

    files: tuple[File, ...] = ()
    overrides: tuple[tuple[str, str], ...] = ()
    """Configuration keys (without the dashes) and their values."""
    given: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Operands of the present switches, by name of the switch."""
    unknown: str | None = None
    """The first invalid token."""
    hint: str = ""
    """Hint for the message about `unknown`."""

    @property
    def switch(self) -> Switch | None:
        """The switch to run instead of serving, or None."""
        return next((switch for switch in SWITCHES if switch.run and switch.name in self.given), None)

    def has(self, name: str) -> bool:
        return name in self.given


def parse_arguments(tokens: Sequence[str]) -> Arguments:
    """Parse the command line (command-1). Switches may be at any position; their case is ignored. A mistake is not
    raised: the result has the `unknown` argument and a hint.
    """
    files: list[File] = []
    overrides: list[tuple[str, str]] = []
    operands_by_switch: dict[str, tuple[str, ...]] = {}
    rest = list(tokens)
    optional = False
    while rest:
        token = rest.pop(0)
        word, equals, value = token.partition("=")
        switch = _BY_WORD.get(word.casefold())
        if switch is not None and equals and not switch.operands:
            return Arguments(unknown=token, hint=f"{switch.name} takes no value.")
        if switch is not None:
            operands = (value,) if equals else tuple(_take(rest, switch))
            if len(operands) < switch.least:
                return Arguments(unknown=token, hint=f"It needs {' and '.join(switch.operands)}.")
            operands_by_switch[switch.name] = operands
            if switch.alone and rest and not rest[0].startswith("-"):
                expected = " and ".join(operand.strip("[]") for operand in switch.operands)
                return Arguments(
                    unknown=rest[0], hint=f"{switch.name} takes {expected}; a text with blanks needs quotes."
                )
        elif token in OPTIONAL:
            optional = True
        elif len(word) > 2 and token.startswith("--") and equals:
            overrides.append((word[2:], value))
        elif token.startswith("-"):
            return Arguments(unknown=token, hint=_near(token))
        else:
            files.append(File(token, optional))
            optional = False
    if optional:
        return Arguments(unknown=OPTIONAL[1], hint="It needs FILE.")
    for switch in SWITCHES:
        if switch.configures and files and switch.name in operands_by_switch:
            hint = f"{switch.name} takes one file, and reads no other configuration file."
            return Arguments(unknown=files[0].path, hint=hint)
        if (
            switch.goes_with
            and switch.name in operands_by_switch
            and operands_by_switch.keys().isdisjoint(switch.goes_with)
        ):
            return Arguments(unknown=switch.name, hint=f"It requires {' or '.join(switch.goes_with)}.")
    return Arguments(tuple(files), tuple(overrides), operands_by_switch)


def _take(rest: list[str], switch: Switch) -> Iterator[str]:
    """Take the operands of a switch from the head of `rest`, as far as they are there. An optional operand never begins
    with a dash.
    """
    for operand in switch.operands:
        if not rest or (operand.startswith("[") and rest[0].startswith("-")):
            return
        yield rest.pop(0)


def _near(token: str) -> str:
    """Return a hint for an unknown token: the nearest switch, or how keys are set; empty if there is none."""
    words = [word for word in (*_BY_WORD, *OPTIONAL) if word.startswith("--")]
    near = difflib.get_close_matches(token.casefold(), words, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]}?"
    looks_like_a_key = ":" in token or token[2:3].isupper()
    return "A configuration key is given as --Section:Key=value." if looks_like_a_key else ""
