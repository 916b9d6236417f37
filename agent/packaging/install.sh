#!/bin/sh
# Installs the agent on this machine, from the files beside this script. Downloads nothing. Can be repeated.
#
#   install.sh --endpoint URL (--bootstrap-token TOKEN | --bootstrap-token-file FILE | --token-file FILE)
#              [--certificate-authority FILE | --ca-hash HASH] [--cluster-id ID] [--node-name NAME] [--runtime none|exec|podman]
#              [--update-key FILE] [--root DIR] [--no-start]
#   install.sh --uninstall [--purge] [--root DIR]
#
# --runtime podman runs pods as containers, and is the default where podman is installed. exec, the default elsewhere, runs
# them as processes of this machine. none runs no pods. Graceful shutdown is on: 40 s, the last 10 s for critical pods.
# --update-key is the public key that signs releases of the agent: with it the agent updates itself. An existing
# configuration is kept. --root installs into a directory, for images. --uninstall keeps key and configuration, unless --purge.
# A Node.js beside this script is installed, too, and runs the agent. The Debian package has this script as
# nodekeeper-agent-setup: the program is installed there already.
set -eu

die() { echo "install.sh: $*" >&2; exit 1; }
usage() { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit "${1:-2}"; }

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root='' endpoint='' cluster='' name='' runtime='' authority='' ca_hash='' bootstrap='' bootstrap_text='' token='' update_key='' start=yes
action=install purge=no
while [ $# -gt 0 ]; do
  case $1 in
    --no-start) start=no; shift; continue ;;
    --uninstall) action=uninstall; shift; continue ;;
    --purge) purge=yes; shift; continue ;;
    --help|-h) usage 0 ;;
  esac
  [ $# -ge 2 ] || usage
  case $1 in
    --endpoint) endpoint=$2 ;;
    --cluster-id) cluster=$2 ;;
    --node-name) name=$2 ;;
    --runtime) runtime=$2 ;;
    --certificate-authority) authority=$2 ;;
    --ca-hash) ca_hash=$2 ;;
    --bootstrap-token) bootstrap_text=$2 ;;
    --bootstrap-token-file) bootstrap=$2 ;;
    --token-file) token=$2 ;;
    --update-key) update_key=$2 ;;
    --root) root=$2 ;;
    *) usage ;;
  esac
  shift 2
done

# Of the Debian package: its files are those of dpkg.
case $here in */usr/lib/nodekeeper-agent) packaged=yes ;; *) packaged=no ;; esac
lib=$root/usr/local/lib/nodekeeper
units=$root/etc/systemd/system
drop_ins=$units/nodekeeper-agent.service.d
logind=$root/etc/systemd/logind.conf.d/99-kubelet.conf
config=$root/etc/nodekeeper/agent.yaml
command=$root/usr/local/bin/nodekeeper-agent
logind_comment='# Time to terminate the pods of this node before it shuts down.'
shutdown_seconds=40

[ -n "$root" ] || [ "$(id -u)" = 0 ] || die "run as root, or pass --root"

# Containers of podman are in groups of their own, which no unit of ours holds.
remove_podman_pods() {
  command -v podman >/dev/null || return 0
  pods=$(podman pod ps --quiet --filter label=nodekeeper.dev/root-directory=/var/lib/nodekeeper) || return 0
  for pod in $pods; do
    podman pod rm --force --time 5 "$pod" >/dev/null || echo "install.sh: podman could not remove pod $pod" >&2
  done
}

# The agent wrote them, if this machine routed Services.
remove_service_rules() {
  [ -e /var/lib/nodekeeper/services.json ] || return 0
  for family in ip ip6; do
    for table in nodekeeper nodekeeper-policy; do nft delete table "$family" "$table" 2>/dev/null || true; done
  done
  address=$(sed -n 's/^{"dnsAddress":"\([0-9a-f.:]*\)".*/\1/p' /var/lib/nodekeeper/services.json)
  case $address in *:*) address=$address/128 ;; *) address=$address/32 ;; esac
  ip address delete "$address" dev lo 2>/dev/null || true
  rm -f /var/lib/nodekeeper/services.json
}

uninstall() {
  if [ -z "$root" ]; then
    # The second unit holds the groups of pods of the runtime exec: stopping it terminates them.
    systemctl disable --now nodekeeper-agent.service nodekeeper-pods.service 2>/dev/null || true
    remove_podman_pods
    remove_service_rules
    # Secrets and tokens of these pods. The unit keeps the directory when it stops.
    rm -rf /run/nodekeeper
  fi
  rm -rf "$drop_ins"
  if [ "$packaged" = no ]; then
    rm -rf "$lib"
    rm -f "$units/nodekeeper-agent.service" "$units/nodekeeper-pods.service" "$command"
  fi
  # Only the file that this script or the agent wrote.
  if [ -e "$logind" ] && [ "$(head -n 1 "$logind")" = "$logind_comment" ]; then rm -f "$logind"; fi
  if [ "$purge" = yes ]; then rm -rf "$root/var/lib/nodekeeper" "$root/etc/nodekeeper"; fi
  if [ -z "$root" ]; then
    systemctl daemon-reload
    systemctl kill -s HUP systemd-logind.service 2>/dev/null || true
  fi
  [ "$purge" = yes ] || echo "kept $root/etc/nodekeeper and $root/var/lib/nodekeeper; --purge removes them"
}

if [ "$action" = uninstall ]; then
  uninstall
  exit 0
fi

for file in nodekeeper-agent.mjs start-agent.mjs; do
  [ -f "$here/$file" ] || die "$file is not beside this script; npm run agent:build makes it"
done
if [ -z "$root" ]; then
  if [ -x "$here/node" ]; then node=$here/node; else node=node; fi
  command -v "$node" >/dev/null || die "Node.js 22.18.0 or later has to be on the PATH"
  # The agent checks which Node.js it needs.
  "$node" "$here/nodekeeper-agent.mjs" --help >/dev/null || die "the agent does not run here; nothing was installed"
fi
has_podman() { if [ -n "$root" ]; then [ -x "$root/usr/bin/podman" ]; else command -v podman >/dev/null; fi; }
# The unit must fit the configuration, which is kept.
if [ -e "$config" ]; then
  kept=$(sed -n "s/^runtime: *[\"']\{0,1\}\([a-z]*\).*/\1/p" "$config" | head -n 1)
  kept=${kept:-${runtime:-none}}
  [ "${runtime:-$kept}" = "$kept" ] || echo "$config has runtime $kept: --runtime $runtime has no effect" >&2
  runtime=$kept
fi
if [ -z "$runtime" ]; then if has_podman; then runtime=podman; else runtime=exec; fi; fi
case $runtime in
  none|exec|podman) ;;
  *) die "--runtime has to be none, exec or podman; found $runtime" ;;
esac
case $endpoint$cluster$name$runtime$ca_hash$bootstrap_text in *'"'*|*'
'*) die "quotes and line breaks cannot stand in a setting" ;; esac
if [ ! -e "$config" ]; then
  [ -n "$endpoint" ] || die "--endpoint is needed"
  [ -n "$bootstrap$bootstrap_text$token" ] || die "--bootstrap-token, --bootstrap-token-file or --token-file is needed"
fi
for file in "$authority" "$bootstrap" "$token" "$update_key"; do
  [ -z "$file" ] || [ -r "$file" ] || die "$file cannot be read"
done

# Replaces a file as a whole: a power cut or a full disk leaves the old one. FROM may be the same file.
put() { # MODE FROM TO
  install -m "$1" "$2" "$3.new"
  mv -f "$3.new" "$3"
}

install -d -m 0755 "$root/etc/nodekeeper" "$drop_ins" "$root/etc/systemd/logind.conf.d"
install -d -m 0700 "$root/var/lib/nodekeeper"
if [ "$packaged" = no ]; then
  install -d -m 0755 "$lib" "$units" "$root/usr/local/bin"
  put 0755 "$here/nodekeeper-agent.mjs" "$lib/nodekeeper-agent.mjs"
  put 0755 "$here/start-agent.mjs" "$lib/start-agent.mjs"
  put 0644 "$here/nodekeeper-pods.service" "$units/nodekeeper-pods.service"
  if [ -x "$here/node" ]; then
    put 0755 "$here/node" "$lib/node"
    own=/usr/local/lib/nodekeeper
    sed "s#^ExecStart=/usr/bin/env node #ExecStart=$own/node #" "$here/nodekeeper-agent.service" > "$units/nodekeeper-agent.service.new"
    printf '#!/bin/sh\nexec %s/node %s/start-agent.mjs "$@"\n' "$own" "$own" > "$command.new"
    chmod 0755 "$command.new"
    mv -f "$command.new" "$command"
    mv -f "$units/nodekeeper-agent.service.new" "$units/nodekeeper-agent.service"
  else
    rm -f "$lib/node"
    put 0644 "$here/nodekeeper-agent.service" "$units/nodekeeper-agent.service"
    ln -sfn ../lib/nodekeeper/start-agent.mjs "$command"
  fi
fi
# The version that is installed now starts, not the one of an earlier update.
rm -f "$root/var/lib/nodekeeper/agents/trial.json" "$root/var/lib/nodekeeper/agents/current"
[ -z "$update_key" ] || put 0644 "$update_key" "$root/etc/nodekeeper/update-key.pem"

rm -f "$drop_ins/podman.conf" "$drop_ins/exec.conf"
case $runtime in
podman)
  # Containers need what plain processes do not: namespaces, cgroups, mounts, and their own files.
  cat > "$drop_ins/podman.conf" <<'UNIT'
[Service]
NoNewPrivileges=no
ProtectSystem=no
PrivateTmp=no
ProtectKernelTunables=no
ProtectControlGroups=no
RestrictNamespaces=no
RestrictSUIDSGID=no
RestrictAddressFamilies=
SystemCallArchitectures=
UNIT
  ;;
exec)
  # Volumes of pods are bind mounts in a mount namespace per container, and fsGroup needs the set-group-ID bit.
  cat > "$drop_ins/exec.conf" <<'UNIT'
[Service]
RestrictNamespaces=mnt
RestrictSUIDSGID=no
ProtectSystem=no
UNIT
  ;;
esac

# logind allows 5 s by default, and a shutdown would then kill pods before their grace period ends.
[ -e "$logind" ] || printf '%s\n[Login]\nInhibitDelayMaxSec=%s\n' "$logind_comment" "$shutdown_seconds" > "$logind"
chmod 0644 "$logind"

if [ -e "$config" ]; then
  echo "kept $config"
  if [ -n "$update_key" ] && ! grep -q '^updatePublicKeyFile:' "$config"; then
    echo "To turn updates on add to $config: updatePublicKeyFile: /etc/nodekeeper/update-key.pem"
  fi
else
  [ -z "$authority" ] || put 0644 "$authority" "$root/etc/nodekeeper/ca.pem"
  [ -z "$bootstrap" ] || put 0600 "$bootstrap" "$root/etc/nodekeeper/bootstrap-token"
  if [ -n "$bootstrap_text" ]; then
    (umask 077; printf '%s\n' "$bootstrap_text" > "$root/etc/nodekeeper/bootstrap-token")
    bootstrap=given
  fi
  [ -z "$token" ] || put 0600 "$token" "$root/etc/nodekeeper/token"
  {
    echo 'apiVersion: nodekeeper.dev/v1alpha1'
    echo 'kind: AgentConfiguration'
    echo "endpoint: \"$endpoint\""
    [ -z "$authority" ] || echo 'certificateAuthorityFile: /etc/nodekeeper/ca.pem'
    [ -z "$ca_hash" ] || echo "caHash: \"$ca_hash\""
    [ -z "$bootstrap" ] || echo 'bootstrapTokenFile: /etc/nodekeeper/bootstrap-token'
    [ -z "$token" ] || echo 'tokenFile: /etc/nodekeeper/token'
    [ -z "$cluster" ] || echo "clusterId: \"$cluster\""
    [ -z "$name" ] || echo "hostnameOverride: \"$name\""
    [ -z "$update_key" ] || echo 'updatePublicKeyFile: /etc/nodekeeper/update-key.pem'
    echo "runtime: \"$runtime\""
    echo 'rootDirectory: /var/lib/nodekeeper'
    # Less than half a minute would cut the default grace of a pod short.
    echo '---'
    echo 'apiVersion: kubelet.config.k8s.io/v1beta1'
    echo 'kind: KubeletConfiguration'
    echo "shutdownGracePeriod: ${shutdown_seconds}s"
    echo 'shutdownGracePeriodCriticalPods: 10s'
  } > "$config.new"
  chmod 0644 "$config.new"
  mv "$config.new" "$config"
  case $runtime in
    none) echo 'runtime none: this node runs no pods; a pod bound to it fails with reason NoRuntime.' ;;
    exec) echo 'runtime exec: pods run as processes of this machine, without images.' ;;
    podman) echo 'runtime podman: pods run as containers.' ;;
  esac
fi

if [ -z "$root" ] && [ "$start" = yes ]; then
  systemctl daemon-reload
  systemctl kill -s HUP systemd-logind.service 2>/dev/null || true
  systemctl enable nodekeeper-agent.service
  # Pods continue during a restart of the agent.
  systemctl restart nodekeeper-agent.service
  echo 'To check this machine: nodekeeper-agent doctor'
fi
