#!/bin/sh
# Makes C text of files that are served as they are: embed_files.sh FILE… > page.c
#
# Each is compressed, and has a name for this very content (ETag).  The table ends with a file without a name.
set -e
number=0
table=
echo '#include "http/api/page.h"'
for file in "$@"; do
	echo "static const unsigned char bytes_$number[] = {"
	gzip -9nc "$file" | od -An -v -tu1 | sed 's/  */,/g; s/^,//; s/$/,/'
	echo "};"
	hash=$(sha256sum < "$file" | cut -c1-16)
	table="$table{ \"${file##*/}\", \"\\\\\"$hash\\\\\"\", bytes_$number, sizeof(bytes_$number), $(wc -c < "$file") }, "
	number=$((number + 1))
done
printf 'const struct page_file page_files[] = { %b{ 0 } };\n' "$table"
