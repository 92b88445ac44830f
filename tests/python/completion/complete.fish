# Prints what TAB offers in fish behind each line: complete.fish SCRIPT LINE…
# A line of output for each line, `> LINE`, and below it the words that are offered.
source $argv[1]
for line in $argv[2..]
    echo "> $line"
    complete -C $line | string replace -r '\t.*' ''
end
exit 0
