/**
 * Host ports of pods, as the scheduler and a kubelet compare them: two pods of a node never have the same.
 *
 * Source: HostPortInfo in staging/src/k8s.io/kube-scheduler/framework/types.go.
 */
import type { PodSpec } from '../types.ts';

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

/** All IPv4 addresses. `::` is an ordinary address here, as upstream. */
const ANY = '0.0.0.0';
const NONE: readonly never[] = Object.freeze([]);

/** Ports of containers and sidecars. Other init containers run before them. */
export function hostPortsOf(spec: PodSpec): readonly HostPort[] {
  const ports: HostPort[] = [];
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const { ports: listed } of [...(spec.containers ?? []), ...sidecars]) {
    for (const { hostPort = 0, hostIP = '', protocol = 'TCP' } of listed ?? []) {
      if (hostPort > 0) ports.push({ ip: hostIP === '' ? ANY : hostIP, protocol: protocol || 'TCP', port: hostPort });
    }
  }
  return ports.length === 0 ? NONE : ports;
}

/** Whether used ports conflict with these. Made once for many nodes: a pod may have thousands of ports. */
export function conflictsWith(wanted: readonly HostPort[]): (used: readonly HostPort[]) => boolean {
  const byPort = new Map<string, Set<string>>();
  for (const { ip, protocol, port } of wanted) {
    const key = `${protocol}/${port}`;
    const ips = byPort.get(key);
    if (ips === undefined) byPort.set(key, new Set([ip]));
    else ips.add(ip);
  }
  return (used) =>
    used.some(({ ip, protocol, port }) => {
      const ips = byPort.get(`${protocol}/${port}`);
      return ips !== undefined && (ip === ANY || ips.has(ANY) || ips.has(ip));
    });
}
