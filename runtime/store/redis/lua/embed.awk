# Turns Lua scripts into C text: awk -f embed.awk lua/*.lua > lua.c
# A line `--include NAME` is replaced by lib/NAME.lua; comments and indentation stay here.

function put(line)
{
	if (line ~ /^[ \t]*--/ || line ~ /^[ \t]*$/)
		return
	sub(/^[ \t]+/, "", line)
	gsub(/\\/, "&&", line)
	gsub(/"/, "\\\"", line)
	printf "        \"%s\\n\"\n", line
}

function include(file,    line)
{
	while ((getline line < file) > 0)
		put(line)
	close(file)
}

FNR == 1 {
	if (NR > 1)
		print ";"
	else
		print "#include \"store/redis/scripts.h\""
	folder = FILENAME
	sub(/[^\/]*$/, "", folder)
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.lua$/, "", name)
	printf "\nconst char lua_%s[] =\n", name
}

/^--include / {
	include(folder "lib/" $2 ".lua")
	next
}

{
	put($0)
}

END {
	print ";"
}
