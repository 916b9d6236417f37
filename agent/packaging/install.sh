#!/bin/sh
# Installs the agent on this machine, from the files beside this script. Fetches nothing.
#
#   install.sh --endpoint URL (--bootstrap-token-file FILE | --token-file FILE)
#              [--certificate-authority FILE] [--cluster-id ID] [--node-name NAME] [--runtime none|exec|podman]
#              [--root DIR] [--no-start]
#
# --runtime none (the default) runs no pods: the node beats and reports, and a pod bound to it fails with reason NoRuntime.
# exec runs pods as processes of this machine, podman as containers. Graceful shutdown is on: 40 s, the last 10 of them for
# critical pods. A configuration that exists already is kept. --root installs into a directory, for images.
set -eu

die() { echo "install.sh: $*" >&2; exit 1; }
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit "${1:-2}"; }

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root= endpoint= cluster= name= runtime=none authority= bootstrap= token= start=yes
while [ $# -gt 0 ]; do
  case $1 in
    --no-start) start=no; shift; continue ;;
    --help|-h) usage 0 ;;
  esac
  [ $# -ge 2 ] || usage
  case $1 in
    --endpoint) endpoint=$2 ;;
    --cluster-id) cluster=$2 ;;
    --node-name) name=$2 ;;
    --runtime) runtime=$2 ;;
    --certificate-authority) authority=$2 ;;
    --bootstrap-token-file) bootstrap=$2 ;;
    --token-file) token=$2 ;;
    --root) root=$2 ;;
    *) usage ;;
  esac
  shift 2
done

[ -f "$here/nodekeeper-agent.mjs" ] || die "nodekeeper-agent.mjs is not beside this script; npm run agent:build makes it"
[ -n "$root" ] || [ "$(id -u)" = 0 ] || die "run as root, or give --root"
if [ -z "$root" ]; then
  command -v node >/dev/null || die "Node.js 22.18.0 or later has to be on the PATH"
  # The agent says itself which Node.js it needs.
  node "$here/nodekeeper-agent.mjs" --help >/dev/null || die "the agent does not run here; nothing was installed"
fi
case $runtime in
  none|exec|podman) ;;
  *) die "--runtime has to be none, exec or podman; found $runtime" ;;
esac
case $endpoint$cluster$name$runtime in *'"'*|*'
'*) die "quotes and line breaks cannot stand in a setting" ;; esac

config=$root/etc/nodekeeper/agent.yaml
install -d -m 0755 "$root/usr/local/lib/nodekeeper" "$root/etc/nodekeeper" "$root/etc/systemd/system" \
  "$root/etc/systemd/logind.conf.d"
install -d -m 0700 "$root/var/lib/nodekeeper"
install -m 0755 "$here/nodekeeper-agent.mjs" "$root/usr/local/lib/nodekeeper/nodekeeper-agent.mjs"
install -m 0644 "$here/nodekeeper-agent.service" "$root/etc/systemd/system/nodekeeper-agent.service"
install -m 0644 "$here/nodekeeper-pods.service" "$root/etc/systemd/system/nodekeeper-pods.service"
if [ "$runtime" = podman ]; then
  # Containers need what plain processes do not: namespaces, cgroups, mounts, and their own files.
  install -d -m 0755 "$root/etc/systemd/system/nodekeeper-agent.service.d"
  cat > "$root/etc/systemd/system/nodekeeper-agent.service.d/podman.conf" <<'UNIT'
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
fi

if [ -e "$config" ]; then
  echo "kept $config"
else
  [ -n "$endpoint" ] || die "--endpoint is needed"
  [ -n "$bootstrap$token" ] || die "--bootstrap-token-file or --token-file is needed"
  [ -z "$authority" ] || install -m 0644 "$authority" "$root/etc/nodekeeper/ca.pem"
  [ -z "$bootstrap" ] || install -m 0600 "$bootstrap" "$root/etc/nodekeeper/bootstrap-token"
  [ -z "$token" ] || install -m 0600 "$token" "$root/etc/nodekeeper/token"
  {
    echo 'apiVersion: nodekeeper.dev/v1alpha1'
    echo 'kind: AgentConfiguration'
    echo "endpoint: \"$endpoint\""
    [ -z "$authority" ] || echo 'certificateAuthorityFile: /etc/nodekeeper/ca.pem'
    [ -z "$bootstrap" ] || echo 'bootstrapTokenFile: /etc/nodekeeper/bootstrap-token'
    [ -z "$token" ] || echo 'tokenFile: /etc/nodekeeper/token'
    [ -z "$cluster" ] || echo "clusterId: \"$cluster\""
    [ -z "$name" ] || echo "hostnameOverride: \"$name\""
    echo "runtime: \"$runtime\""
    echo 'rootDirectory: /var/lib/nodekeeper'
    # Less than half a minute would cut the default grace of a pod short.
    echo '---'
    echo 'apiVersion: kubelet.config.k8s.io/v1beta1'
    echo 'kind: KubeletConfiguration'
    echo 'shutdownGracePeriod: 40s'
    echo 'shutdownGracePeriodCriticalPods: 10s'
  } > "$config"
  chmod 0644 "$config"
  if [ "$runtime" = none ]; then
    echo 'runtime none: this node runs no pods; a pod bound to it fails with reason NoRuntime.'
    echo "To run pods set runtime to exec or podman in $config, or remove the file and install with --runtime."
  fi
fi

if [ -z "$root" ] && [ "$start" = yes ]; then
  systemctl daemon-reload
  systemctl enable --now nodekeeper-agent.service
fi
