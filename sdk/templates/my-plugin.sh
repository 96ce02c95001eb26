#!/bin/sh
# my-plugin: counts the words of its payload; replace that with your own work.
#
# A command of plugin = "exec.so": it is started for each task, with the payload on standard input.  What it prints is the
# task's result.  Exit code 0: done; 65: rejected, never again; 69: unavailable, once others can go on; 79: later, when this key can
# go on; any other: again, as a failed attempt.
words=$(wc -w | tr -d ' ')
if [ "$words" -eq 0 ]; then
        echo "the payload has no words" >&2
        exit 65
fi
printf %s "$words"
