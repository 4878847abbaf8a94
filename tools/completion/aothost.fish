# Completion of aothost for fish: the command says what a line may go on with, beside files.
function __aothost_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete $words[2..-1] 2> /dev/null
end
complete -c aothost -a '(__aothost_complete)'
