# Completion of aothost for bash: the command says what a line may go on with; where it says nothing a file is meant.
_aothost() {
  local found
  COMPREPLY=()
  while IFS=$'\t' read -r found _; do
    COMPREPLY+=("$found")
  done < <("$1" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -o default -F _aothost aothost
