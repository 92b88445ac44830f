# Types each line into an interactive zsh and prints what TAB would offer: complete.zsh FOLDER LINE…
# FOLDER holds _tilewise. A line of output for each line: `> LINE`, and below it the words that are offered.
zmodload zsh/zpty
zpty shell "PS1= TERM=dumb zsh -f -i"

told() { zpty -w shell "$1"; }

# Reads up to the line that ends with $1; what came is in $reply.
heard() { zpty -r shell reply "*$1*" }

told "stty -echo; LISTMAX=10000 LINES=1000"
told "fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -d ${(q)1}/dump"
# With -O, -A or -D compadd fills an array, and offers nothing.
told 'compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)[[:blank:]]* ]]; then builtin compadd "$@"; return; fi
    local -a offered
    builtin compadd -A offered "$@"
    (($#offered)) && print -rl -- "<<${^offered}>>"
    builtin compadd "$@"
}'
told 'asked() { zle kill-whole-line; LBUFFER=$line; zle complete-word; zle kill-whole-line; print -r -- "<<end""ed>>" }'
told 'zle -N asked; zle -C complete-word complete-word _main_complete; bindkey "^T" asked'
told 'print read""y'
heard ready
shift
for line in "$@"; do
    told "line=${(q)line}; print se""t"
    heard set
    zpty -n -w shell $'\x14'
    heard "<<ended>>"
    print -r -- "> $line"
    print -rl -- ${(M)${(f)reply}:#*<<*>>*} | tr -d '\r' | sed 's/.*<<\(.*\)>>.*/\1/; /^ended$/d; /^$/d'
done
zpty -d shell
