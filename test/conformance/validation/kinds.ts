/** Every kind that is validated as upstream does, with a valid object and the constraints of its own. */
import type { KubeObject } from '../../../shared/kube/types.ts';
import { APPLICATION_OBJECTS } from '../../support/application-objects.ts';
import type { Constraint } from './constraint.ts';
import type { NameForm } from './metadata.ts';
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
  /** A valid object without apiVersion, kind and metadata. */
  readonly base: Omit<KubeObject, 'metadata'>;
  readonly names: NameForm;
  /** Path of the pod template, with a dot at its end. Absent: it has none. */
  readonly template?: string;
  readonly constraints: readonly Constraint[];
}

const object = (resource: string): Omit<KubeObject, 'metadata'> => APPLICATION_OBJECTS[resource] ?? {};

/** By plural name. */
export const VALIDATED: Readonly<Record<string, ValidatedKind>> = {
  deployments: {
    base: object('deployments'),
    names: 'subdomain',
    template: 'spec.template.',
    constraints: deployments,
  },
  replicasets: {
    base: object('replicasets'),
    names: 'subdomain',
    template: 'spec.template.',
    constraints: replicaSets,
  },
  replicationcontrollers: {
    base: { spec: { selector: templateLabels, template } },
    names: 'subdomain',
    template: 'spec.template.',
    constraints: replicationControllers,
  },
  statefulsets: { base: object('statefulsets'), names: 'label', template: 'spec.template.', constraints: statefulSets },
  daemonsets: {
    base: { spec: { selector: { matchLabels: templateLabels }, template } },
    names: 'subdomain',
    template: 'spec.template.',
    constraints: daemonSets,
  },
  jobs: { base: object('jobs'), names: 'subdomain', template: 'spec.template.', constraints: [] },
  cronjobs: {
    base: object('cronjobs'),
    names: 'subdomain',
    template: 'spec.jobTemplate.spec.template.',
    constraints: [],
  },
  podtemplates: { base: object('podtemplates'), names: 'subdomain', template: 'template.', constraints: [] },
  pods: { base: { spec: template.spec }, names: 'subdomain', template: '', constraints: [] },
  nodes: { base: { spec: {} }, names: 'subdomain', constraints: [] },
  leases: { base: { spec: { holderIdentity: 'h', leaseDurationSeconds: 40 } }, names: 'subdomain', constraints: [] },
  events: {
    base: { involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' }, reason: 'Started', type: 'Normal' },
    names: 'path segment',
    constraints: [],
  },
  namespaces: { base: {}, names: 'label', constraints: [] },
  poddisruptionbudgets: {
    base: { spec: { minAvailable: 1, selector: { matchLabels: templateLabels } } },
    names: 'subdomain',
    constraints: [],
  },
  priorityclasses: { base: { value: 1_000 }, names: 'subdomain', constraints: [] },
  volumeattachments: {
    base: { spec: { attacher: 'ebs.csi.aws.com', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
    names: 'subdomain',
    constraints: [],
  },
  csinodes: { base: { spec: { drivers: [] } }, names: 'subdomain', constraints: [] },
  ...Object.fromEntries(
    (
      [
        ['certificatesigningrequests', 'path segment', []],
        ['clusterrolebindings', 'path segment', []],
        ['clusterroles', 'path segment', []],
        ['configmaps', 'subdomain', []],
        ['controllerrevisions', 'subdomain', []],
        ['csidrivers', 'subdomain', []],
        ['csistoragecapacities', 'subdomain', []],
        ['endpoints', 'subdomain', []],
        ['endpointslices', 'subdomain', []],
        ['horizontalpodautoscalers', 'subdomain', []],
        ['ingressclasses', 'subdomain', []],
        ['ingresses', 'subdomain', []],
        ['limitranges', 'subdomain', []],
        ['networkpolicies', 'subdomain', []],
        ['persistentvolumeclaims', 'subdomain', []],
        ['persistentvolumes', 'subdomain', []],
        ['resourcequotas', 'subdomain', []],
        ['rolebindings', 'path segment', []],
        ['roles', 'path segment', []],
        ['runtimeclasses', 'subdomain', []],
        ['secrets', 'subdomain', []],
        ['serviceaccounts', 'subdomain', []],
        ['services', 'service', []],
        ['storageclasses', 'subdomain', []],
      ] as const
    ).map(([resource, names, constraints]) => [resource, { base: object(resource), names, constraints }]),
  ),
};
