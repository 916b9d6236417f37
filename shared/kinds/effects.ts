/**
 * What follows from an object of each kind: one table. The API warns and refuses by it, and the tables
 * of kinds in README.md, docs/clients.md and docs/kubectl.md are written from it (effects.test.ts).
 */
import { qualifiedResource, type ResourceName } from '../kubernetes/status.ts';

export type Effect =
  /** Something here acts on it. */
  | 'acts'
  /** Read by people, pods or clients, as upstream. Nothing has to act on it. */
  | 'data'
  /** With upstream something acts on it. Here it is stored, and nothing does. */
  | 'unenforced'
  /** Can be listed, and is empty. Writes are refused. */
  | 'empty';

export interface KindEffect {
  /** Plural names, with the group where it is not the core group. */
  readonly kinds: readonly string[];
  readonly effect: Effect;
  /** Agents that route Services act on it. A creation while there are none is that of an unenforced kind. */
  readonly byServiceReaders?: true;
  /** Why nothing acts on it, in refusals. A kind that is `unenforced` or `empty` has it. */
  readonly what?: string;
  /** Sent with the answer to a creation. A kind that is, or may be, `unenforced` has one. */
  readonly warning?: string;
  /** The same, where no controller signs certificates. */
  readonly warningUnlessSigned?: string;
  /** Sent with a list, which is empty. */
  readonly listWarning?: string;
}

const NOT_ENFORCED = 'no node has an agent that enforces it (services.enabled)';

export const KIND_EFFECTS: readonly KindEffect[] = [
  {
    kinds: ['nodes', 'leases.coordination.k8s.io'],
    effect: 'acts',
  },
  {
    kinds: ['pods', 'priorityclasses.scheduling.k8s.io'],
    effect: 'acts',
  },
  {
    kinds: [
      'deployments.apps',
      'replicasets.apps',
      'statefulsets.apps',
      'daemonsets.apps',
      'replicationcontrollers',
      'jobs.batch',
      'cronjobs.batch',
    ],
    effect: 'acts',
  },
  {
    kinds: [
      'validatingadmissionpolicies.admissionregistration.k8s.io',
      'validatingadmissionpolicybindings.admissionregistration.k8s.io',
      'mutatingadmissionpolicies.admissionregistration.k8s.io',
      'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
    ],
    effect: 'acts',
  },
  {
    kinds: ['poddisruptionbudgets.policy'],
    effect: 'acts',
  },
  {
    kinds: ['resourcequotas', 'limitranges'],
    effect: 'acts',
  },
  {
    kinds: ['namespaces'],
    effect: 'acts',
  },
  {
    kinds: ['runtimeclasses.node.k8s.io'],
    effect: 'acts',
  },
  {
    kinds: ['serviceaccounts'],
    effect: 'acts',
  },
  {
    kinds: [
      'roles.rbac.authorization.k8s.io',
      'clusterroles.rbac.authorization.k8s.io',
      'rolebindings.rbac.authorization.k8s.io',
      'clusterrolebindings.rbac.authorization.k8s.io',
    ],
    effect: 'acts',
  },
  {
    kinds: ['certificatesigningrequests.certificates.k8s.io'],
    effect: 'acts',
    warningUnlessSigned: 'nothing signs certificates here: nodekeeper join-command prints how a machine joins',
  },
  {
    kinds: ['endpoints', 'endpointslices.discovery.k8s.io'],
    effect: 'acts',
  },
  {
    kinds: ['services'],
    effect: 'acts',
    warning: 'the address of the Service is routed only on nodes with services.enabled or kube-proxy',
  },
  {
    kinds: ['persistentvolumes', 'persistentvolumeclaims', 'storageclasses.storage.k8s.io'],
    effect: 'acts',
  },
  {
    kinds: ['volumeattachments.storage.k8s.io', 'csinodes.storage.k8s.io'],
    effect: 'acts',
  },
  {
    kinds: ['agentreleases.nodekeeper.dev'],
    effect: 'acts',
  },
  {
    kinds: ['sitepolicies.nodekeeper.dev'],
    effect: 'acts',
  },
  {
    kinds: ['nodeidentities.nodekeeper.dev', 'bootstraptokens.nodekeeper.dev'],
    effect: 'acts',
  },
  { kinds: ['configmaps', 'secrets'], effect: 'data' },
  { kinds: ['events', 'events.events.k8s.io'], effect: 'data' },
  { kinds: ['controllerrevisions.apps', 'podtemplates'], effect: 'data' },
  { kinds: ['nodes.metrics.k8s.io'], effect: 'data' },
  {
    kinds: ['pods.metrics.k8s.io'],
    effect: 'empty',
    what: 'pods are not measured',
    listWarning: 'pods are not measured here; kubectl top nodes has what agents report of their nodes',
  },
  {
    kinds: [
      'decisions.nodekeeper.dev',
      'clusterstatuses.nodekeeper.dev',
      'silencehistograms.nodekeeper.dev',
      'componentstatuses',
    ],
    effect: 'data',
  },
  {
    kinds: ['networkpolicies.networking.k8s.io'],
    effect: 'acts',
    byServiceReaders: true,
    warning: NOT_ENFORCED,
  },
  {
    kinds: ['ingresses.networking.k8s.io', 'ingressclasses.networking.k8s.io'],
    effect: 'unenforced',
    what: 'no traffic is routed, unless a controller of your own does it',
    warning: 'no traffic is routed by it',
  },
  {
    kinds: ['csidrivers.storage.k8s.io', 'csistoragecapacities.storage.k8s.io'],
    effect: 'unenforced',
    what: 'no volume is attached or mounted by a driver, except by a kubelet',
    warning: 'no volume of it is attached or mounted by agents',
  },
  {
    kinds: ['horizontalpodautoscalers.autoscaling'],
    effect: 'unenforced',
    what: 'v1 and v2; nothing scales',
    warning: 'nothing scales by it',
  },
  {
    kinds: ['customresourcedefinitions.apiextensions.k8s.io'],
    effect: 'acts',
  },
  {
    kinds: ['apiservices.apiregistration.k8s.io'],
    effect: 'empty',
    what: 'no other server is asked',
  },
  {
    kinds: [
      'mutatingwebhookconfigurations.admissionregistration.k8s.io',
      'validatingwebhookconfigurations.admissionregistration.k8s.io',
    ],
    effect: 'acts',
  },
];

const byResource = new Map(KIND_EFFECTS.flatMap((each) => each.kinds.map((kind) => [kind, each] as const)));

export const effectOf = (resource: ResourceName): KindEffect | undefined => byResource.get(qualifiedResource(resource));

/** Nodes with agents that act on a kind. */
export interface ActingNodes {
  readonly acting: number;
  /** All nodes. Absent: `acting` is only the least number, or node-monitor has not counted yet. */
  readonly all?: number;
}

interface CreationEffect {
  /** Sent with the answer. */
  readonly warning?: string;
  /** Why nothing acts on the object. Absent: something does. */
  readonly unenforced?: string;
}

/** @param nodes of a kind that is `byServiceReaders` */
export function creationEffect(
  resource: ResourceName & { readonly kind: string },
  { signsCertificates, nodes }: { readonly signsCertificates: boolean; readonly nodes?: ActingNodes },
): CreationEffect {
  const { effect, what, warning, warningUnlessSigned, byServiceReaders } = effectOf(resource) ?? {};
  if (warningUnlessSigned !== undefined && !signsCertificates) return { warning: warningUnlessSigned };
  if (warning === undefined) return {};
  if (effect === 'unenforced') return { warning: `the ${resource.kind} is stored: ${warning}`, unenforced: what! };
  if (byServiceReaders === undefined || nodes === undefined) return { warning };
  const { acting, all = Number.POSITIVE_INFINITY } = nodes;
  if (acting === 0) return { warning: `the ${resource.kind} is stored: ${warning}`, unenforced: warning };
  if (acting >= all) return {};
  const which = Number.isFinite(all) ? `${all - acting} of ${all} nodes have` : 'some nodes may have';
  return { warning: `${which} no agent that enforces it (services.enabled)` };
}

/** Why no object of this kind is written; undefined: it may be, or the verb writes none. */
export function writeRefusal(resource: ResourceName, verb: string): string | undefined {
  if (verb === 'watch') return undefined;
  const { effect, what } = effectOf(resource) ?? {};
  return effect === 'empty' ? `${qualifiedResource(resource)} can be listed here, not written: ${what}` : undefined;
}
