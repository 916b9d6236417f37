/** STATUS of a node, as kubectl prints it (pkg/printers/internalversion/printers.go: printNode). */
import type { KubeNode } from '../types.ts';

export function nodeStatusText(node: KubeNode): string {
  const ready = (node.status?.conditions ?? []).find(({ type }) => type === 'Ready');
  const parts = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'];
  if (node.spec?.unschedulable === true) parts.push('SchedulingDisabled');
  return parts.join(',');
}
