# Prints what TAB offers in bash behind each line: complete.bash SCRIPT LINE…
# A line of output for each line, `> LINE`, and below it the words that are offered.
source "$1"
shift
compopt() { :; } # only a shell that reads from a terminal has completions to set options of

# Cuts $1 into COMP_WORDS as bash does: at blanks, and at = and : too, which are words of their own.
cut_words() {
    local rest=$1 word
    COMP_WORDS=()
    while [[ $rest ]]; do
        case $rest in
        ' '*) rest=${rest#' '} ;;
        [=:]*) word=${rest%%[!=:]*}; COMP_WORDS+=("$word"); rest=${rest#"$word"} ;;
        *) word=${rest%%[ =:]*}; COMP_WORDS+=("$word"); rest=${rest#"$word"} ;;
        esac
    done
    [[ $1 == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
}

COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
for line in "$@"; do
    cut_words "$line"
    COMP_LINE=$line
    COMP_POINT=${#line}
    _tilewise
    echo "> $line"
    ((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}"
done
exit 0
