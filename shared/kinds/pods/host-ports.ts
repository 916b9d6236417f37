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

const conflict = (one: HostPort, other: HostPort): boolean =>
  one.port === other.port &&
  one.protocol === other.protocol &&
  (one.ip === other.ip || one.ip === ANY || other.ip === ANY);

export const portsConflict = (wanted: readonly HostPort[], used: readonly HostPort[]): boolean =>
  wanted.some((one) => used.some((other) => conflict(one, other)));
