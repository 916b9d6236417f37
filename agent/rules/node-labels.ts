/**
 * Labels and taints that a node may be configured to register with
 * (cmd/kubelet/app/options/options.go, k8s.io/kubelet/pkg/apis/well_known_labels.go).
 */

import { validateTaints } from '../../shared/kinds/nodes/validate.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';
import { validateLabels } from '../../shared/kubernetes/validate-metadata.ts';

/** Labels that describe the machine. Only these are corrected on an existing Node. */
export const MACHINE_LABELS: readonly string[] = [
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/windows-build',
];

/** All labels of the machine except the Windows build, which may not be configured. */
const ALLOWED_KEYS: readonly string[] = MACHINE_LABELS.filter((key) => key !== 'node.kubernetes.io/windows-build');
const ALLOWED_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];
const RESERVED_NAMESPACES = ['kubernetes.io', 'k8s.io'];

const isWithin = (namespace: string, parent: string): boolean =>
  namespace === parent || namespace.endsWith(`.${parent}`);

function isRefused(key: string): boolean {
  const slash = key.indexOf('/');
  const namespace = slash === -1 ? '' : key.slice(0, slash);
  if (!RESERVED_NAMESPACES.some((reserved) => isWithin(namespace, reserved))) return false;
  return !ALLOWED_KEYS.includes(key) && !ALLOWED_NAMESPACES.some((allowed) => isWithin(namespace, allowed));
}

/** Why the agent must not start with these labels; empty if it may. */
export function nodeLabelComplaints(labels: Readonly<Record<string, string>>): string[] {
  const complaints: string[] = [];
  const refused = Object.keys(labels).filter(isRefused).sort();
  if (refused.length > 0) {
    complaints.push(
      `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: ${refused.join(', ')}; ` +
        `of these name spaces a node may set what is below ${ALLOWED_NAMESPACES.join(' and ')}, and ${ALLOWED_KEYS.join(', ')}`,
    );
  }
  for (const { message } of validateLabels(labels, 'nodeLabels')) complaints.push(`nodeLabels: ${message}`);
  return complaints;
}

/** Why the agent must not start with these taints; empty if it may. */
export function registerTaintComplaints(taints: readonly Taint[]): string[] {
  const complaints = validateTaints(taints, 'registerWithTaints').map(
    ({ field, message }) => `${field ?? 'registerWithTaints'}: ${message}`,
  );
  for (const [index, { timeAdded }] of taints.entries()) {
    if (timeAdded !== undefined) complaints.push(`registerWithTaints[${index}].timeAdded: must not be set`);
  }
  return complaints;
}
