# Makes C text of files that are part of the binary: awk -f embed.awk FILE… > embedded.c
#
# runtime/store/redis/lua/claim.lua becomes `const char embedded_runtime_store_redis_lua_claim_lua[]`.  In a Lua script a
# line `--include NAME` is replaced by lib/NAME.lua beside it; its comments and indentation are left out.

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
	sub(/[^\/]*$/, "", folder)
	is_lua = FILENAME ~ /\.lua$/
	symbol = FILENAME
	gsub(/[^A-Za-z0-9]/, "_", symbol)
	printf "extern const char embedded_%s[];\nconst char embedded_%s[] =\n", symbol, symbol
}

is_lua && /^--include / {
	include(folder "lib/" $2 ".lua")
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
