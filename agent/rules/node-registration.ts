/** The initial Node, and the corrections of an existing one (pkg/kubelet/kubelet_node_status.go). */
import { defined } from '../../shared/defined.ts';
import { addTaint, hasTaint, TAINT_UNINITIALIZED, TAINT_UNSCHEDULABLE } from '../../shared/fleet/nodes/taint.ts';
import type { KubeNode, Taint } from '../../shared/kinds/types.ts';
import type { AgentConfig } from '../config.ts';
import { MACHINE_LABELS } from './node-labels.ts';
import { isExtendedResource, isHugePages, sameQuantity } from './node-resources.ts';

const ATTACH_DETACH_ANNOTATION = 'volumes.kubernetes.io/controller-managed-attach-detach';

export type RegistrationSettings = Pick<
  AgentConfig,
  | 'nodeName'
  | 'nodeLabels'
  | 'providerId'
  | 'registerSchedulable'
  | 'registerWithTaints'
  | 'cloudProvider'
  | 'enableControllerAttachDetach'
>;

export interface MachineLabels {
  readonly hostname: string;
  /** Go's name: linux, windows. */
  readonly operatingSystem: string;
  /** Go's name: amd64, arm64. */
  readonly architecture: string;
  /** Labels specific to this operating system. */
  readonly others?: Readonly<Record<string, string>>;
}

/** The Node without a status. */
export function initialNode(settings: RegistrationSettings, machine: MachineLabels): KubeNode {
  const taints = initialTaints(settings);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: settings.nodeName,
      labels: {
        'kubernetes.io/hostname': machine.hostname,
        'kubernetes.io/os': machine.operatingSystem,
        'kubernetes.io/arch': machine.architecture,
        'beta.kubernetes.io/os': machine.operatingSystem,
        'beta.kubernetes.io/arch': machine.architecture,
        ...machine.others,
        ...settings.nodeLabels,
      },
      ...(settings.enableControllerAttachDetach ? { annotations: { [ATTACH_DETACH_ANNOTATION]: 'true' } } : {}),
    },
    spec: {
      ...(settings.providerId === '' ? {} : { providerID: settings.providerId }),
      ...(settings.registerSchedulable ? {} : { unschedulable: true }),
      ...(taints.length === 0 ? {} : { taints }),
    },
    status: {},
  };
}

function initialTaints(settings: RegistrationSettings): Taint[] {
  let taints: Taint[] = settings.registerWithTaints.map((taint) => ({ ...taint }));
  const unschedulable: Taint = { key: TAINT_UNSCHEDULABLE, effect: 'NoSchedule' };
  if (!settings.registerSchedulable && !hasTaint(taints, unschedulable)) taints = addTaint(taints, unschedulable);
  if (settings.cloudProvider === 'external') {
    taints.push({ key: TAINT_UNINITIALIZED, value: 'true', effect: 'NoSchedule' });
  }
  return taints;
}

export interface Reconciliation {
  readonly node: KubeNode;
  readonly changed: boolean;
}

/**
 * The existing Node, corrected where the machine may have changed over a restart: attach-detach annotation, labels of
 * the machine, resources. Taints, spec.unschedulable, provider ID and other labels stay as they are.
 *
 * `zeroExtendedResources`: the state of the devices says that the node was created again. Resources that plug-ins
 * advertised before are then set to zero, until they advertise them again.
 */
export function reconcileNode(
  existing: KubeNode,
  initial: KubeNode,
  { zeroExtendedResources }: { readonly zeroExtendedResources: boolean },
): Reconciliation {
  const annotations = withAttachDetach(existing.metadata.annotations ?? {}, initial.metadata.annotations ?? {});
  const labels = withMachineLabels(existing.metadata.labels ?? {}, initial.metadata.labels ?? {});
  const resources = reconcileResources(existing, initial, zeroExtendedResources);
  if (annotations === undefined && labels === undefined && resources === undefined) {
    return { node: existing, changed: false };
  }
  return {
    changed: true,
    node: {
      ...existing,
      metadata: {
        ...existing.metadata,
        ...defined({ annotations, labels }),
      },
      ...(resources === undefined ? {} : { status: { ...existing.status, ...resources } }),
    },
  };
}

type Texts = Record<string, string>;

/** Undefined if nothing changes. This applies to the next two functions too. */
function withAttachDetach(existing: Readonly<Texts>, initial: Readonly<Texts>): Texts | undefined {
  const wanted = initial[ATTACH_DETACH_ANNOTATION];
  if (existing[ATTACH_DETACH_ANNOTATION] === wanted) return undefined;
  const { [ATTACH_DETACH_ANNOTATION]: _present, ...others } = existing;
  return wanted === undefined ? others : { ...others, [ATTACH_DETACH_ANNOTATION]: wanted };
}

function withMachineLabels(existing: Readonly<Texts>, initial: Readonly<Texts>): Texts | undefined {
  const labels = { ...existing };
  let changed = false;
  for (const key of MACHINE_LABELS) {
    const wanted = initial[key];
    if (wanted === undefined || wanted === (existing[key] ?? '')) continue;
    changed = true;
    if (wanted === '') delete labels[key];
    else labels[key] = wanted;
  }
  return changed ? labels : undefined;
}

interface Resources {
  readonly capacity: Texts;
  readonly allocatable: Texts;
}

function reconcileResources(existing: KubeNode, initial: KubeNode, zeroExtended: boolean): Resources | undefined {
  const [ours, theirs] = [initial.status ?? {}, existing.status ?? {}];
  const capacity = { ...(theirs.capacity ?? ours.capacity) };
  const allocatable = { ...(theirs.allocatable ?? ours.allocatable) };
  let changed =
    (theirs.capacity === undefined && ours.capacity !== undefined) ||
    (theirs.allocatable === undefined && ours.allocatable !== undefined);
  for (const name of zeroExtended ? Object.keys(capacity).filter(isExtendedResource) : []) {
    capacity[name] = '0';
    allocatable[name] = '0';
    changed = true;
  }
  for (const name of Object.keys(ours.capacity ?? {}).filter(isHugePages)) {
    const wanted = { capacity: ours.capacity?.[name] ?? '0', allocatable: ours.allocatable?.[name] ?? '0' };
    if (sameQuantity(capacity[name], wanted.capacity) && sameQuantity(allocatable[name], wanted.allocatable)) continue;
    capacity[name] = wanted.capacity;
    allocatable[name] = wanted.allocatable;
    changed = true;
  }
  for (const name of Object.keys({ ...capacity, ...allocatable }).filter(isHugePages)) {
    if (ours.capacity?.[name] !== undefined) continue;
    delete capacity[name];
    delete allocatable[name];
    changed = true;
  }
  return changed ? { capacity, allocatable } : undefined;
}
