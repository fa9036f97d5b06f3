#!/bin/sh
# Installs the header, the libraries and the pkg-config file of torchless for C.
#
#     install.sh FOLDER PREFIX VERSION    FOLDER has what Cargo built
set -eu
from=$1 prefix=$2 version=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
prefix=$(cd "$prefix" && pwd)
cp "$here/include/torchless.h" "$prefix/include/"
for library in libtorchless_c.so libtorchless_c.dylib libtorchless_c.a; do
    if [ -e "$from/$library" ]; then cp "$from/$library" "$prefix/lib/"; fi
done
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/torchless.pc.in" >"$prefix/lib/pkgconfig/torchless.pc"
