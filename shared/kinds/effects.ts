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
  /** A cell of docs/clients.md. Links are those of that page. */
  readonly what: string;
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
    what: 'a Node without heartbeats is marked and tainted, and its pods are evicted',
  },
  {
    kinds: ['pods', 'priorityclasses.scheduling.k8s.io'],
    effect: 'acts',
    what: '[scheduled](scheduler.md), and run by [agents](agent.md) and kubelets',
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
    what: '[they make and replace pods](workloads.md); the claims of a StatefulSet too',
  },
  {
    kinds: [
      'validatingadmissionpolicies.admissionregistration.k8s.io',
      'validatingadmissionpolicybindings.admissionregistration.k8s.io',
      'mutatingadmissionpolicies.admissionregistration.k8s.io',
      'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
    ],
    effect: 'acts',
    what: '[evaluated for writes through the API](admission-policies.md)',
  },
  {
    kinds: ['poddisruptionbudgets.policy'],
    effect: 'acts',
    what: 'v1 and v1beta1; evaluated at evictions; [status](workloads.md#poddisruptionbudgets)',
  },
  {
    kinds: ['resourcequotas', 'limitranges'],
    effect: 'acts',
    what: 'enforced; a namespace without them costs nothing',
  },
  {
    kinds: ['namespaces'],
    effect: 'acts',
    what: 'each has the account `default` and the ConfigMap `kube-root-ca.crt` with the authorities of the endpoint',
  },
  {
    kinds: ['runtimeclasses.node.k8s.io'],
    effect: 'acts',
    what: 'a pod gets overhead, node selector and tolerations of its class',
  },
  {
    kinds: ['serviceaccounts'],
    effect: 'acts',
    what: 'sign in with [tokens](access.md#service-accounts); each pod has one, with a volume of its token',
  },
  {
    kinds: [
      'roles.rbac.authorization.k8s.io',
      'clusterroles.rbac.authorization.k8s.io',
      'rolebindings.rbac.authorization.k8s.io',
      'clusterrolebindings.rbac.authorization.k8s.io',
    ],
    effect: 'acts',
    what: '[evaluated](access.md#roles); aggregated; checked against escalation',
  },
  {
    kinds: ['certificatesigningrequests.certificates.k8s.io'],
    effect: 'acts',
    what: 'signed by `nodekeeper serve` ([one-machine.md](one-machine.md#certificates)); on AWS stored and approved, and nothing is signed',
    warningUnlessSigned: 'nothing signs certificates here: nodekeeper join-command prints how a machine joins',
  },
  {
    kinds: ['endpoints', 'endpointslices.discovery.k8s.io'],
    effect: 'acts',
    what: 'of Services with a selector written from their pods; other Endpoints stored as sent, and mirrored into EndpointSlices; `default/kubernetes` has the address of `--listen`; on AWS, and on loopback, that of its Service',
  },
  {
    kinds: ['services'],
    effect: 'acts',
    what: 'an address of 10.96.0.0/16, node ports of 30000–32767, and Endpoints; [routed](services.md) by agents with `services.enabled`, and by kube-proxy',
    warning: 'the address of the Service is routed only on nodes with services.enabled or kube-proxy',
  },
  {
    kinds: ['persistentvolumes', 'persistentvolumeclaims', 'storageclasses.storage.k8s.io'],
    effect: 'acts',
    what: '[bound](volumes.md); class `local` makes directories on machines with an agent',
  },
  {
    kinds: ['volumeattachments.storage.k8s.io', 'csinodes.storage.k8s.io'],
    effect: 'acts',
    what: 'written by kubelets and CSI drivers; volumes that no pod uses are detached from dead nodes',
  },
  {
    kinds: ['agentreleases.nodekeeper.dev'],
    effect: 'acts',
    what: 'versions that [agents install themselves](agent.md#updates)',
  },
  {
    kinds: ['sitepolicies.nodekeeper.dev'],
    effect: 'acts',
    what: 'pods that [the hub of a site may move](hub.md#pods-that-may-move-without-the-cluster)',
  },
  {
    kinds: ['nodeidentities.nodekeeper.dev', 'bootstraptokens.nodekeeper.dev'],
    effect: 'acts',
    what: 'who may sign in [as a node](security.md)',
  },
  { kinds: ['configmaps', 'secrets'], effect: 'data', what: 'stored; nodes read what their pods refer to' },
  { kinds: ['events', 'events.events.k8s.io'], effect: 'data', what: 'one object in two forms, for an hour' },
  { kinds: ['controllerrevisions.apps', 'podtemplates'], effect: 'data', what: 'stored' },
  { kinds: ['nodes.metrics.k8s.io'], effect: 'data', what: 'what agents report; a kubelet reports nothing here' },
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
    what: 'read-only: what the controllers [decided](explain.md), and their state',
  },
  {
    kinds: ['networkpolicies.networking.k8s.io'],
    effect: 'acts',
    byServiceReaders: true,
    what: 'enforced by agents that [route Services](services.md#networkpolicies), for pods with an address of their own',
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
    what: '[adds a kind](custom-resources.md); conversion `None`',
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
    what: '[called](admission-policies.md#webhooks) by `nodekeeper serve`; refused on AWS',
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
