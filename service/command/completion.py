"""`--completion SHELL`: print a script that completes switches, configuration keys and files of `rowcall` in a shell.

The words are those of this version of rowcall; after an upgrade the script has to be generated again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from rowcall.core.config import KEYS, KeyType
from rowcall.service.command.switches import OPTIONAL, SWITCHES, Arguments, Switch

_NOT_GIVEN_ALONE = {KeyType.SECTION, KeyType.OBJECT_MAP, KeyType.OBJECTS, KeyType.STEPS, KeyType.TEXT_MAP}


def show(arguments: Arguments) -> int:
    """Print the completion script for a shell. Return 1 for an unknown shell."""
    (shell,) = arguments.given["--completion"]
    write = _SCRIPTS.get(shell.casefold())
    if write is None:
        print(f"rowcall: {shell}: no such shell; known are {', '.join(_SCRIPTS)}", file=sys.stderr)
        return 1
    sys.stdout.write(write())
    return 0


def _words() -> list[str]:
    """Return the names of all switches, and the option `--optional`."""
    return [switch.name for switch in SWITCHES] + list(OPTIONAL[1:])


def _keys() -> list[str]:
    """Return the tokens `--Section:Key=` of the keys that the command line can set, except those below user-defined
    names."""
    return [f"--{key.path}=" for key in KEYS if key.type not in _NOT_GIVEN_ALONE and not {"<", "["} & set(key.path)]


def _with_choices() -> list[Switch]:
    """Return the switches whose operand has a fixed set of values."""
    return [switch for switch in SWITCHES if switch.choices]


def _bash() -> str:
    cases = "\n".join(
        f"    {switch.name}) COMPREPLY=( $(compgen -W '{' '.join(switch.choices)}' -- \"$current\") ); return ;;"
        for switch in _with_choices()
    )
    return f"""\
# rowcall for bash: eval "$(rowcall --completion bash)"
_rowcall() {{
  local current previous line
  line="${{COMP_LINE:0:COMP_POINT}}"
  current="${{line##* }}"
  previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  COMPREPLY=()
  case "$previous" in
{cases}
  esac
  if [[ "$current" == -*:* ]]; then
    COMPREPLY=( $(compgen -W '{" ".join(_keys())}' -- "$current") )
  elif [[ "$current" == -* ]]; then
    COMPREPLY=( $(compgen -W '{" ".join(_words())} {" ".join(_tops())}' -- "$current") )
  else
    COMPREPLY=( $(compgen -f -X '!*.json' -- "$current") $(compgen -d -S / -- "$current") )
    return
  fi
  # A colon ends a word for bash, so what stands before the last one is there already.
  local before="${{current%"${{current##*:}}"}}"
  if [[ "$COMP_WORDBREAKS" == *:* && -n "$before" ]]; then
    COMPREPLY=( "${{COMPREPLY[@]#"$before"}}" )
  fi
  [[ "${{COMPREPLY[0]}}" == *[=:] ]] && compopt -o nospace 2>/dev/null
}}
complete -F _rowcall rowcall
"""


def _tops() -> list[str]:
    """Return the tokens with which keys begin: `--Section:` of each top-level section, and `--Key=` of the keys without
    a section."""
    tops = dict.fromkeys(f"{key.split(':')[0]}:" if ":" in key else key for key in _keys())
    return list(tops)


def _zsh() -> str:
    options = "\n".join(
        f"    {_single_quoted(f'{switch.name}[{_plain(switch.meaning)}]{_zsh_operand(switch)}')}" for switch in SWITCHES
    )
    keys = "\n".join(f"    {_single_quoted(key.replace(':', chr(92) + ':'))}" for key in _keys())
    return f"""\
#compdef rowcall
# rowcall for zsh: rowcall --completion zsh > "${{fpath[1]}}/_rowcall"
_rowcall() {{
  local -a options keys
  options=(
{options}
    '*'{{-o,--optional}}'[The next file may be missing.]:file:_files -g "*.json"'
    '*:file:_files -g "*.json"'
  )
  keys=(
{keys}
  )
  if [[ "$PREFIX" == --[A-Z]* ]]; then
    _describe -o 'configuration key' keys -S ''
  else
    _arguments -s $options
  fi
}}
if [ "$funcstack[1]" = _rowcall ]; then _rowcall "$@"; else compdef _rowcall rowcall; fi
"""


def _zsh_operand(switch: Switch) -> str:
    """Return the operands of a switch in the notation of zsh's `_arguments`; empty if it has none."""
    if switch.choices:
        return f":{switch.operands[0].lower()}:({' '.join(switch.choices)})"
    return "".join(f":{':' if name.startswith('[') else ''}{name.strip('[]').lower()}: " for name in switch.operands)


def _fish() -> str:
    lines = ["# rowcall for fish: rowcall --completion fish > ~/.config/fish/completions/rowcall.fish"]
    lines += [f"complete -c rowcall -l {switch.name[2:]} {_fish_operand(switch)}" for switch in SWITCHES]
    lines.append("complete -c rowcall -s o -l optional -r -d 'The next file may be missing.'")
    keys = " ".join(_single_quoted(key) for key in _keys())
    lines.append(f'complete -c rowcall -n \'string match -qr -- "^--[A-Z]" (commandline -ct)\' -a "{keys}"')
    return "\n".join(lines) + "\n"


def _fish_operand(switch: Switch) -> str:
    """Return the options of fish's `complete` for the operand and the description of a switch."""
    about = f"-d {_single_quoted(_plain(switch.meaning))}"
    return f"-x -a {_single_quoted(' '.join(switch.choices))} {about}" if switch.choices else about


def _single_quoted(text: str) -> str:
    """Return the text as one word of a shell, in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def _plain(text: str) -> str:
    """Return the text for a description in zsh: square brackets become parentheses, and colons commas, because zsh
    gives them a meaning."""
    return text.replace("[", "(").replace("]", ")").replace(":", ",")


_SCRIPTS: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
