#include "cli/manual/shells.h"

#include <stdio.h>
#include <string.h>

/* The words up to the cursor go to `quiver complete`, which prints what may stand there, one a line with a text behind
 * a tab; a line ":files" stands for the shell's own completion of files. */
static const char bash[] =
        "# Completion of quiver for bash: source <(quiver help --completion bash)\n"
        "_quiver() {\n"
        "        local line word=${COMP_WORDS[COMP_CWORD]}\n"
        "        COMPREPLY=()\n"
        "        while IFS=$'\\t' read -r line _; do\n"
        "                if [ \"$line\" = :files ]; then\n"
        "                        compopt -o default 2>/dev/null\n"
        "                        while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -f -- "
        "\"$word\")\n"
        "                else\n"
        "                        COMPREPLY+=(\"$(printf %q \"$line\")\")\n"
        "                fi\n"
        "        done < <(quiver complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
        "        if [ ${#COMPREPLY[@]} = 1 ] && [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi\n"
        "}\n"
        "complete -F _quiver quiver\n";

static const char zsh[] =
        "#compdef quiver\n"
        "# Completion of quiver for zsh: quiver help --completion zsh > a folder of $fpath/_quiver\n"
        "_quiver() {\n"
        "        local line word text\n"
        "        local -a found\n"
        "        for line in ${(f)\"$(quiver complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"}; do\n"
        "                if [[ $line == :files ]]; then _files; continue; fi\n"
        "                word=${line%%$'\\t'*} text=${line#*$'\\t'}\n"
        "                [[ $line == *$'\\t'* ]] || text=\n"
        "                found+=(\"${word//:/\\\\:}${text:+:$text}\")\n"
        "        done\n"
        "        (( $#found )) && _describe quiver found\n"
        "}\n"
        "if [[ $funcstack[1] == _quiver ]]; then _quiver \"$@\"; else compdef _quiver quiver; fi\n";

static const char fish[] =
        "# Completion of quiver for fish: quiver help --completion fish > ~/.config/fish/completions/quiver.fish\n"
        "function __quiver_complete\n"
        "        set -l words (commandline -opc) (commandline -ct)\n"
        "        for line in (quiver complete -- $words[2..-1] 2>/dev/null)\n"
        "                if test \"$line\" = :files\n"
        "                        __fish_complete_path (commandline -ct)\n"
        "                else\n"
        "                        echo $line\n"
        "                end\n"
        "        end\n"
        "end\n"
        "complete -c quiver -f -a '(__quiver_complete)'\n";

bool shell_print(const char *name)
{
        static const struct {
                const char *name, *script;
        } shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
        for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
                if (!strcmp(shells[i].name, name)) {
                        (void)fputs(shells[i].script, stdout);
                        return true;
                }
        }
        return false;
}
