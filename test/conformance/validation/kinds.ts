/** Every kind that is validated as upstream does, with a valid object and the constraints of its own. */
import { defined } from '../../../shared/defined.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { APPLICATION_OBJECTS } from '../../support/application-objects.ts';
import {
  autoscalers,
  certificateRequests,
  clusterRoleBindings,
  clusterRoles,
  controllerRevisions,
  disruptionBudgets,
  priorityClasses,
  roleBindings,
  roles,
  runtimeClasses,
} from './access.ts';
import {
  mutatingBindings,
  mutatingPolicies,
  mutatingWebhooks,
  validatingBindings,
  validatingPolicies,
  validatingWebhooks,
  webhook,
} from './admission.ts';
import { cronJobs, jobs } from './batch.ts';
import type { Constraint } from './constraint.ts';
import { configMaps, events, leases, limitRanges, namespaces, nodes, pods, resourceQuotas, secrets } from './core.ts';
import type { NameForm } from './metadata.ts';
import { endpointSlices, endpoints, ingressClasses, ingresses, networkPolicies, services } from './networking.ts';
import { agentReleases, bootstrapTokens, releaseArtifact, sitePolicies } from './own.ts';
import {
  claims,
  csiDrivers,
  csiNodes,
  storageCapacities,
  storageClasses,
  volumeAttachments,
  volumes,
} from './storage.ts';
import {
  daemonSets,
  deployments,
  replicaSets,
  replicationControllers,
  statefulSets,
  template,
  templateLabels,
} from './workloads.ts';

export interface ValidatedKind {
  /** Functions of upstream, or the page of ours, that have the constraints. */
  readonly source: string;
  /** A valid object without apiVersion, kind and metadata. */
  readonly base: Omit<KubeObject, 'metadata'>;
  /** Absent: of the metadata only the name is stored, and its form is a constraint of the kind. */
  readonly names?: NameForm;
  /** Path of the pod template, with a dot at its end. Absent: it has none. */
  readonly template?: string;
  /** Empty: it has none besides those of its metadata and template. */
  readonly constraints: readonly Constraint[];
}

const object = (resource: string): Omit<KubeObject, 'metadata'> => APPLICATION_OBJECTS[resource] ?? {};

const podTemplate = 'spec.template.';
const noOwn: readonly Constraint[] = [];

/** A kind with an object of `APPLICATION_OBJECTS`, or another. */
const kind = (
  resource: string,
  source: string,
  names: NameForm | undefined,
  constraints: readonly Constraint[],
  more: Partial<ValidatedKind> = {},
): [string, ValidatedKind] => [
  resource,
  { source, base: object(resource), constraints, ...defined({ names }), ...more },
];

/** By plural name. */
export const VALIDATED: Readonly<Record<string, ValidatedKind>> = Object.fromEntries([
  kind('deployments', 'ValidateDeployment', 'subdomain', deployments, { template: podTemplate }),
  kind('replicasets', 'ValidateReplicaSet', 'subdomain', replicaSets, { template: podTemplate }),
  kind('replicationcontrollers', 'ValidateReplicationController', 'subdomain', replicationControllers, {
    base: { spec: { selector: templateLabels, template } },
    template: podTemplate,
  }),
  kind('statefulsets', 'ValidateStatefulSet', 'label', statefulSets, { template: podTemplate }),
  kind('daemonsets', 'ValidateDaemonSet', 'subdomain', daemonSets, {
    base: { spec: { selector: { matchLabels: templateLabels }, template } },
    template: podTemplate,
  }),
  kind('jobs', 'ValidateJob, ValidateJobUpdateStatus', 'subdomain', jobs, { template: podTemplate }),
  kind('cronjobs', 'ValidateCronJobCreate', 'subdomain', cronJobs, {
    template: 'spec.jobTemplate.spec.template.',
  }),
  kind('podtemplates', 'ValidatePodTemplate', 'subdomain', noOwn, { template: 'template.' }),
  kind('pods', 'ValidatePodCreate, ValidatePodUpdate', 'subdomain', pods, {
    base: { spec: template.spec },
    template: '',
  }),
  kind('nodes', 'ValidateNode', 'subdomain', nodes, { base: { spec: {} } }),
  kind('leases', 'ValidateLease', 'subdomain', leases, {
    base: { spec: { holderIdentity: 'h', leaseDurationSeconds: 40 } },
  }),
  kind('events', 'legacyValidateEvent, ValidateEventCreate', 'path segment', events, {
    base: { involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' }, reason: 'Started', type: 'Normal' },
  }),
  kind('namespaces', 'ValidateNamespace', 'label', namespaces),
  kind('poddisruptionbudgets', 'ValidatePodDisruptionBudget', 'subdomain', disruptionBudgets, {
    base: { spec: { minAvailable: 1, selector: { matchLabels: templateLabels } } },
  }),
  kind('priorityclasses', 'ValidatePriorityClass', 'subdomain', priorityClasses, { base: { value: 1_000 } }),
  kind('volumeattachments', 'ValidateVolumeAttachment', 'subdomain', volumeAttachments, {
    base: { spec: { attacher: 'ebs.csi.aws.com', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
  }),
  kind('csinodes', 'ValidateCSINode', 'subdomain', csiNodes, { base: { spec: { drivers: [] } } }),
  kind('certificatesigningrequests', 'ValidateCertificateSigningRequestCreate', 'path segment', certificateRequests),
  kind('clusterrolebindings', 'ValidateClusterRoleBinding', 'path segment', clusterRoleBindings),
  kind('clusterroles', 'ValidateClusterRole', 'path segment', clusterRoles),
  kind('mutatingadmissionpolicies', 'ValidateMutatingAdmissionPolicy', 'subdomain', mutatingPolicies),
  kind('mutatingadmissionpolicybindings', 'ValidateMutatingAdmissionPolicyBinding', 'subdomain', mutatingBindings),
  kind('validatingadmissionpolicies', 'ValidateValidatingAdmissionPolicy', 'subdomain', validatingPolicies),
  kind(
    'validatingadmissionpolicybindings',
    'ValidateValidatingAdmissionPolicyBinding',
    'subdomain',
    validatingBindings,
  ),
  kind('mutatingwebhookconfigurations', 'ValidateMutatingWebhookConfiguration', 'subdomain', mutatingWebhooks, {
    base: { webhooks: [webhook] },
  }),
  kind('validatingwebhookconfigurations', 'ValidateValidatingWebhookConfiguration', 'subdomain', validatingWebhooks, {
    base: { webhooks: [webhook] },
  }),
  kind('configmaps', 'ValidateConfigMap', 'subdomain', configMaps),
  kind('controllerrevisions', 'ValidateControllerRevisionCreate', 'subdomain', controllerRevisions),
  kind('csidrivers', 'ValidateCSIDriver', 'subdomain', csiDrivers),
  kind('csistoragecapacities', 'ValidateCSIStorageCapacity', 'subdomain', storageCapacities),
  kind('endpoints', 'ValidateEndpointsCreate', 'subdomain', endpoints),
  kind('endpointslices', 'ValidateEndpointSliceCreate', 'subdomain', endpointSlices),
  kind('horizontalpodautoscalers', 'ValidateHorizontalPodAutoscaler', 'subdomain', autoscalers),
  kind('ingressclasses', 'ValidateIngressClass', 'subdomain', ingressClasses),
  kind('ingresses', 'ValidateIngressCreate', 'subdomain', ingresses),
  kind('limitranges', 'ValidateLimitRange', 'subdomain', limitRanges),
  kind('networkpolicies', 'ValidateNetworkPolicy', 'subdomain', networkPolicies),
  kind('persistentvolumeclaims', 'ValidatePersistentVolumeClaim', 'subdomain', claims),
  kind('persistentvolumes', 'ValidatePersistentVolume', 'subdomain', volumes),
  kind('resourcequotas', 'ValidateResourceQuota', 'subdomain', resourceQuotas),
  kind('rolebindings', 'ValidateRoleBinding', 'path segment', roleBindings),
  kind('roles', 'ValidateRole', 'path segment', roles),
  kind('runtimeclasses', 'ValidateRuntimeClass', 'subdomain', runtimeClasses),
  kind('secrets', 'ValidateSecret', 'subdomain', secrets),
  kind('serviceaccounts', 'ValidateServiceAccount', 'subdomain', noOwn),
  kind('services', 'ValidateServiceCreate', 'service', services),
  kind('storageclasses', 'ValidateStorageClass', 'subdomain', storageClasses),
  kind('agentreleases', 'docs/agent.md', 'subdomain', agentReleases, {
    base: { spec: { version: '2.0.0', artifacts: [releaseArtifact] } },
  }),
  kind('sitepolicies', 'docs/hub.md', 'subdomain', sitePolicies, {
    base: { spec: { hub: 'hub', nodes: ['m1'], namespaces: ['default'] } },
  }),
  kind('bootstraptokens', 'docs/security.md', undefined, bootstrapTokens, {
    base: { spec: { secretSha256: 'a'.repeat(64), expires: '2026-02-01T00:00:00Z' } },
  }),
]);

/**
 * Written by requests of other forms, which have tests of their own: a machine's enrolment
 * (test/e2e/node-identity.test.ts), and a definition, which is named by its content
 * (shared/kinds/customresourcedefinitions/validate.test.ts).
 */
export const OTHERWISE_WRITTEN: readonly string[] = ['customresourcedefinitions', 'nodeidentities'];
