/**
 * NodePorts: host ports that pods of the node use.
 *
 * Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go.
 */
import { conflictsWith } from '../../shared/kinds/pods/host-ports.ts';
import type { Filter, Rejection } from '../../shared/scheduling/filter.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';

const REJECTED: Rejection = {
  plugin: 'NodePorts',
  reasons: ["node(s) didn't have free ports for the requested pod ports"],
  isResolvable: true,
};
export function hostPortFilter({ hostPorts }: SchedulablePod): Filter {
  const conflicts = conflictsWith(hostPorts);
  return (state) => (conflicts(state.hostPorts) ? REJECTED : undefined);
}
