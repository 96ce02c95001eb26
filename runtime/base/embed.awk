# Makes C text of files that are part of the binary: awk -f embed.awk FILE… > embedded.c
#
# etc/runtime.cfg becomes `const char embedded_etc_runtime_cfg[]`.  A Lua script is known by its name alone, whichever folder
# of lua/ it is in: store/redis/lua/shard/advance.lua is embedded_runtime_store_redis_lua_advance_lua.  In a script a line
# `--include NAME` is replaced by lua/lib/NAME.lua; comments and indentation are left out.

function put(line)
{
	gsub(/\\/, "&&", line)
	gsub(/"/, "\\\"", line)
	printf "        \"%s\\n\"\n", line
}

function put_lua(line)
{
	if (line ~ /^[ \t]*--/ || line ~ /^[ \t]*$/)
		return
	sub(/^[ \t]+/, "", line)
	put(line)
}

function include(file,    line)
{
	while ((getline line < file) > 0)
		put_lua(line)
	close(file)
}

FNR == 1 {
	if (NR > 1)
		print ";"
	folder = FILENAME
	sub(/\/lua\/.*$/, "/lua/lib/", folder)
	is_lua = FILENAME ~ /\.lua$/
	symbol = FILENAME
	sub(/\/lua\/[a-z]+\//, "/lua/", symbol)
	gsub(/[^A-Za-z0-9]/, "_", symbol)
	printf "extern const char embedded_%s[];\nconst char embedded_%s[] =\n", symbol, symbol
}

is_lua && /^--include / {
	include(folder $2 ".lua")
	next
}

{
	if (is_lua)
		put_lua($0)
	else
		put($0)
}

END {
	print ";"
}
