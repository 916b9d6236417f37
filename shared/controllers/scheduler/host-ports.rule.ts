/**
 * NodePorts: host ports that pods of the node use.
 *
 * Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go, HostPortInfo in
 * staging/src/k8s.io/kube-scheduler/framework/types.go.
 */
import type { Filter, Rejection } from './filter.rule.ts';
import type { HostPort, SchedulablePod } from './world.rule.ts';

const REJECTED: Rejection = {
  plugin: 'NodePorts',
  reasons: ["node(s) didn't have free ports for the requested pod ports"],
  isResolvable: true,
};
/** All IPv4 addresses. `::` is an ordinary address here, as upstream. */
const ANY = '0.0.0.0';

const conflict = (one: HostPort, other: HostPort): boolean =>
  one.port === other.port &&
  one.protocol === other.protocol &&
  (one.ip === other.ip || one.ip === ANY || other.ip === ANY);

export const portsConflict = (wanted: readonly HostPort[], used: readonly HostPort[]): boolean =>
  wanted.some((one) => used.some((other) => conflict(one, other)));

export const hostPortFilter =
  ({ hostPorts }: SchedulablePod): Filter =>
  (state) =>
    portsConflict(hostPorts, state.hostPorts) ? REJECTED : undefined;
