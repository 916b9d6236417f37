/**
 * NodePorts: host ports that pods of the node use.
 *
 * Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go.
 */
import { portsConflict } from '../../shared/kinds/pods/host-ports.ts';
import type { Filter, Rejection } from '../../shared/scheduling/filter.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';

const REJECTED: Rejection = {
  plugin: 'NodePorts',
  reasons: ["node(s) didn't have free ports for the requested pod ports"],
  isResolvable: true,
};
export const hostPortFilter =
  ({ hostPorts }: SchedulablePod): Filter =>
  (state) =>
    portsConflict(hostPorts, state.hostPorts) ? REJECTED : undefined;
