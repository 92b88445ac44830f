"""The completion script for bash: a function that walks the words, and tables made from the declarations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tilewise.cli.completion.offers import Command, Offer

# Bash cuts words at = and : too, and replaces only what stands behind the last of them.
_WALK = r"""
_tilewise() {
    local rest=${COMP_LINE:0:COMP_POINT} words=() index word glued=
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        [[ $word == [=:]* ]] && glued=1
        [[ $index == 0 || $rest == [[:blank:]]* ]] && glued=
        rest=${rest#"${rest%%[![:blank:]]*}"}
        ((index == COMP_CWORD)) && word=$rest
        if [[ $glued ]]; then words[-1]+=$word; else words+=("$word"); fi
        rest=${rest#"$word"}
        glued=
        [[ $word == *[=:] ]] && glued=1
    done
    local current=${words[-1]} command='' flag='' place=1 only='' flags valued
    unset 'words[-1]'
    _tilewise_flags ''
    for word in "${words[@]:1}"; do
        if [[ $flag ]]; then
            flag=
        elif [[ $only || $word != -?* || ! $command ]]; then
            if ((place == 1)) && _tilewise_flags "${command:+$command }$word"; then
                command=${command:+$command }$word
            else
                ((place++))
            fi
        elif [[ $word == -- ]]; then
            only=1
        elif [[ " $valued " == *" $word "* ]]; then
            flag=$word
        fi
    done

    local before='' choices='' joined='' endings='' path
    COMPREPLY=()
    if [[ ! $flag && ! $only && $current == --*=* ]]; then
        flag=${current%%=*} before=${current%%=*}= current=${current#*=}
    elif [[ ! $flag && ! $only && $current == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$current"))
        return
    fi
    _tilewise_offer "${command#plan }" "${flag:-$place}"
    if [[ $joined ]]; then
        compopt -o nospace
        [[ $current == *"$joined"* ]] && before+=${current%"$joined"*}$joined current=${current##*"$joined"}
    fi
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
    if [[ $endings ]]; then
        compopt -o filenames
        path=${current#[\"\']} path=${path//\\/}
        while IFS= read -r path; do
            if [[ -d ${path/#\~\//$HOME/} || $path =~ ($endings)$ ]]; then
                COMPREPLY+=("$path")
            fi
        done < <(compgen -f -- "$path")
    fi
    local kept='' sign
    for sign in = :; do
        word=$before$current
        word=${word%"${word##*"$sign"}"}
        [[ $COMP_WORDBREAKS == *$sign* && ${#word} -gt ${#kept} ]] && kept=$word
    done
    for index in "${!COMPREPLY[@]}"; do
        word=$before${COMPREPLY[index]}
        COMPREPLY[index]=${word#"$kept"}
    done
}
"""


def script(commands: list[Command], mark: str) -> str:
    """The whole script; `mark` says who wrote it."""
    return "\n".join(
        [
            f"# What TAB completes behind `tilewise` in bash. {mark}; write it again after an update.",
            _WALK,
            "# Sets `flags` and, of these, `valued`, which take a value; fails where $1 is not a command.",
            "_tilewise_flags() {",
            "    case $1 in",
            *_flags(commands),
            "    *) return 1 ;;",
            "    esac",
            "}",
            "",
            "# Sets what may be the value of a flag, or the word at a place, of a command.",
            "_tilewise_offer() {",
            '    case "$1 $2" in',
            *_offers(commands),
            "    esac",
            "}",
            "",
            "complete -F _tilewise tilewise",
            "",
        ]
    )


def _flags(commands: list[Command]) -> Iterator[str]:
    for command in commands:
        every = [spelt for flag in command.flags for spelt in flag.spellings]
        valued = [spelt for flag in command.flags if flag.offer is not None for spelt in flag.spellings]
        yield f"    {shlex.quote(command.name)})"
        yield f"        flags={shlex.quote(' '.join(every))}"
        yield f"        valued={shlex.quote(' '.join(valued))}"
        yield "        ;;"


def _offers(commands: list[Command]) -> Iterator[str]:
    """A case for each offer that there is, with all the places that have it; those of any place last."""
    cases: dict[Offer, list[str]] = {}
    anywhere: dict[Offer, list[str]] = {}
    for command in commands:
        if command.planned:  # has what the job has
            continue
        for flag in command.flags:
            for spelt in flag.spellings if flag.offer else ():
                cases.setdefault(flag.offer or Offer(), []).append(shlex.quote(f"{command.name} {spelt}"))
        for place, offer in enumerate(command.positions, 1):
            if offer:
                cases.setdefault(offer, []).append(shlex.quote(f"{command.name} {place}"))
        if command.rest and command.positions[-1]:
            anywhere.setdefault(command.positions[-1], []).append(f"{shlex.quote(command.name)}' '[0-9]*")
    for offer, patterns in (*cases.items(), *anywhere.items()):
        yield f"    {' | '.join(patterns)})"
        if offer.words:
            yield f"        choices={shlex.quote(' '.join(offer.words))}"
        if offer.joined:
            yield f"        joined={shlex.quote(offer.joined)}"
        if offer.endings:
            yield f"        endings={shlex.quote('|'.join(re.escape(each) or '.' for each in offer.endings))}"
        yield "        ;;"
