#!/bin/sh
# Installs the agent from the files of a release, after it has verified them. Downloads nothing. Can be repeated.
#
#   install-release.sh --key KEY [--from DIR] OPTION…          the options of install.sh
#   install-release.sh --key KEY [--from DIR] --verify FILE…   installs nothing
#
# KEY is the public key of the release: a file of minisign, or its line RW…. DIR has the files of the release, by default
# this directory. Nothing is unpacked or run before the signature of SHA256SUMS and the sum of the file are right. This
# script and the key cannot verify themselves: do not copy them from where the other files are from.
# Needs openssl 3.0 or later, or else minisign.
set -eu
export LC_ALL=C

die() { echo "install-release.sh: $*" >&2; exit 1; }
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit "${1:-2}"; }

key='' from=. action=install
while [ $# -gt 0 ]; do
  case $1 in
    --help|-h) usage 0 ;;
    --verify) action=verify; shift; break ;;
    --key|--from) [ $# -ge 2 ] || usage ;;
    *) break ;;
  esac
  case $1 in --key) key=$2 ;; --from) from=$2 ;; esac
  shift 2
done
[ -n "$key" ] || die "--key is needed, before the options of install.sh"
[ "$action" = install ] || [ $# -gt 0 ] || usage

# What is verified is a copy that only this user can change, and the copy is installed. Not in /tmp, which may be memory.
mask=$(umask)
umask 077
work=$(mktemp -d "${TMPDIR:-/var/tmp}/nodekeeper-release.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
fetch() { # NAME
  [ -f "$from/$1" ] || die "$1 is not in $from"
  cp -- "$from/$1" "$work/$1" || die "$1 cannot be copied to $work"
}

# Formats of minisign: 2 bytes of algorithm, 8 of key ID, then the key (32 bytes) or the signature (64).
decode() { # LINE FILE BYTES
  printf '%s' "$1" | base64 -d >"$2" 2>/dev/null && [ "$(wc -c <"$2")" -eq "$3" ]
}
part() { tail -c "+$(($2 + 1))" "$1" | head -c "$3"; } # FILE OFFSET BYTES
hex() { od -An -v -tx1 | tr -d ' \n'; }
# As minisign prints it: the last byte first.
key_id() { part "$1" 2 8 | od -An -v -tx1 | awk '{ for (i = NF; i > 0; i--) printf "%s", toupper($i) }'; }

if [ -f "$key" ]; then line=$(sed '/^untrusted comment:/d' "$key" | head -n 1); else line=$key; fi
{ decode "$line" "$work/key" 42 && [ "$(part "$work/key" 0 2 | hex)" = 4564 ]; } ||
  die "--key $key is neither a file with a public key of minisign nor its line RW…"

fetch SHA256SUMS
fetch SHA256SUMS.minisig
signature=$work/SHA256SUMS.minisig
row() { sed -n "$1s/^${2-}//p" "$signature"; } # LINE [PREFIX]
{ decode "$(row 2)" "$work/signature" 74 && decode "$(row 4)" "$work/comment.sig" 64; } ||
  die "SHA256SUMS.minisig is not a signature of minisign, or not copied as a whole"
made_with=$(key_id "$work/signature")
[ "$made_with" = "$(key_id "$work/key")" ] ||
  die "SHA256SUMS.minisig is of key $made_with, and --key is $(key_id "$work/key")"

# DER of an Ed25519 key: this header, and the 32 bytes.
{ printf '\060\052\060\005\006\003\053\145\160\003\041\000'; part "$work/key" 10 32; } >"$work/key.der"
part "$work/signature" 10 64 >"$work/sums.sig"
{ cat "$work/sums.sig"; row 3 'trusted comment: ' | tr -d '\n'; } >"$work/comment"
is_signed() { # FILE SIGNATURE
  openssl pkeyutl -verify -pubin -keyform DER -inkey "$work/key.der" -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}
if openssl pkeyutl -help 2>&1 | grep -q -e -rawin; then
  case $(part "$work/signature" 0 2 | hex) in
    4544) openssl dgst -blake2b512 -binary "$work/SHA256SUMS" >"$work/message" || die "this openssl has no BLAKE2b" ;;
    4564) cp "$work/SHA256SUMS" "$work/message" ;;
    *) die "SHA256SUMS.minisig has an algorithm that is not of minisign" ;;
  esac
  is_signed "$work/message" "$work/sums.sig" || die "SHA256SUMS is not what the key $made_with has signed"
  is_signed "$work/comment" "$work/comment.sig" ||
    die "the comment in SHA256SUMS.minisig is not what the key $made_with has signed"
elif command -v minisign >/dev/null; then
  minisign -V -q -P "$line" -x "$signature" -m "$work/SHA256SUMS" >/dev/null 2>&1 ||
    die "SHA256SUMS or its comment is not what the key $made_with has signed"
else
  die "openssl 3.0 or later, or minisign, is needed to verify signatures"
fi
echo "signed: $(row 3 'trusted comment: '), key $made_with"

# A name is one of a file in the same directory.
wrong=$(awk '
  { name = substr($0, 67) }
  substr($0, 1, 64) ~ /[^0-9a-f]/ || substr($0, 65, 2) != "  " || name !~ /^[A-Za-z0-9_][A-Za-z0-9_.+~-]*$/ {
    print "line " NR " is not a sum and a file name"; exit
  }
  name in seen { print "line " NR " names " name " again"; exit }
  { seen[name] }' "$work/SHA256SUMS")
[ -z "$wrong" ] || die "SHA256SUMS: $wrong"

verify() { # NAME DIR
  sum=$(name=$1 awk 'substr($0, 67) == ENVIRON["name"] { print substr($0, 1, 64) }' "$work/SHA256SUMS")
  [ -n "$sum" ] || die "SHA256SUMS does not name $1"
  [ -f "$2/$1" ] || die "$1 is not in $from"
  found=$(sha256sum <"$2/$1")
  [ "${found%% *}" = "$sum" ] || die "$1 does not have its sum of SHA256SUMS: it was changed, or not copied as a whole"
  echo "verified: $1"
}

if [ "$action" = verify ]; then
  for name; do verify "$name" "$from"; done
  exit 0
fi
case $(uname -m) in
  x86_64) machine=x64 ;;
  aarch64) machine=arm64 ;;
  *) die "a release has no agent for $(uname -m)" ;;
esac
archive=$(awk -v machine="$machine" '
  substr($0, 67) ~ "^nodekeeper-agent-.*-linux-" machine "[.]tar[.]gz$" { print substr($0, 67) }' "$work/SHA256SUMS")
case $archive in
  '') die "SHA256SUMS does not name nodekeeper-agent-VERSION-linux-$machine.tar.gz" ;;
  *'
'*) die "SHA256SUMS names more than one nodekeeper-agent-VERSION-linux-$machine.tar.gz" ;;
esac
fetch "$archive"
verify "$archive" "$work"
mkdir "$work/unpacked"
tar -xzf "$work/$archive" --no-same-owner -C "$work/unpacked"
rm "$work/$archive"
umask "$mask"
sh "$work/unpacked/${archive%.tar.gz}/install.sh" "$@"
