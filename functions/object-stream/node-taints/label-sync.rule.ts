/**
 * Labels that exist under an old and a new name.
 * The two controllers copy in opposite directions: OS and architecture from the stable label to the beta one, topology
 * and instance type from the beta label to the stable one.
 * Source: reconcileNodeLabels in pkg/controller/nodelifecycle/node_lifecycle_controller.go and in
 * staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go.
 */
type Labels = Readonly<Record<string, string>> | undefined;
interface Copy {
  readonly from: string;
  readonly to: string;
}

const OS_ARCH: readonly Copy[] = [
  { from: 'kubernetes.io/os', to: 'beta.kubernetes.io/os' },
  { from: 'kubernetes.io/arch', to: 'beta.kubernetes.io/arch' },
];

const TOPOLOGY: readonly Copy[] = [
  { from: 'failure-domain.beta.kubernetes.io/zone', to: 'topology.kubernetes.io/zone' },
  { from: 'failure-domain.beta.kubernetes.io/region', to: 'topology.kubernetes.io/region' },
  { from: 'beta.kubernetes.io/instance-type', to: 'node.kubernetes.io/instance-type' },
];

function copied(labels: Labels, copies: readonly Copy[]): Record<string, string> | undefined {
  const changes: Record<string, string> = {};
  for (const { from, to } of copies) {
    const value = labels?.[from];
    if (value !== undefined && labels?.[to] !== value) changes[to] = value;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Labels to set on any node; undefined if there are none. */
export const osArchLabels = (labels: Labels): Record<string, string> | undefined => copied(labels, OS_ARCH);

/** Labels to set on a node that EC2 has initialised (no uninitialized taint); undefined if there are none. */
export const topologyLabels = (labels: Labels): Record<string, string> | undefined => copied(labels, TOPOLOGY);
