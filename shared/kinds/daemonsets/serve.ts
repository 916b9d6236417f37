import { ageSince } from '../../kubernetes/age.ts';
import { sameJson } from '../../kubernetes/causes.ts';
import { ageColumn, NONE, nameColumn, selectorColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import type { Column, ResourceDescriptor } from '../descriptor.ts';
import { defaultTemplateSpec } from '../pods/spec-defaults.ts';
import { preparesSpecAndStatus } from '../served-kind.ts';
import type { DaemonSetSpec, KubeDaemonSet } from '../types.ts';
import { DAEMON_SETS } from './resource.ts';
import { validateDaemonSet } from './validate.ts';

const EMPTY_STATUS = {
  currentNumberScheduled: 0,
  numberMisscheduled: 0,
  desiredNumberScheduled: 0,
  numberReady: 0,
};
/** Default of spec.revisionHistoryLimit, as upstream. */
const REVISION_HISTORY_LIMIT = 10;

function storedSpec(given: DaemonSetSpec | undefined): DaemonSetSpec {
  const spec = withoutNulls(given ?? {});
  const { template, updateStrategy: strategy } = spec;
  const type = strategy?.type || 'RollingUpdate';
  const rolling = { maxSurge: 0, maxUnavailable: 1, ...strategy?.rollingUpdate };
  return {
    revisionHistoryLimit: REVISION_HISTORY_LIMIT,
    ...spec,
    template: { ...template, spec: defaultTemplateSpec(template?.spec) },
    updateStrategy: type === 'RollingUpdate' ? { type, rollingUpdate: rolling } : { ...strategy, type },
  };
}

/** Number of the template. Source: pkg/apis/apps/v1/conversion.go, pkg/registry/apps/daemonset/strategy.go. */
const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';

function withTemplateGeneration(object: KubeDaemonSet, generation: number): KubeDaemonSet {
  const annotations = { ...object.metadata.annotations, [TEMPLATE_GENERATION]: String(generation) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function templateGenerationOf({ metadata }: KubeDaemonSet): number {
  const generation = Number(metadata.annotations?.[TEMPLATE_GENERATION]);
  return Number.isSafeInteger(generation) && generation >= 1 ? generation : 1;
}

const prepare = preparesSpecAndStatus(DAEMON_SETS, {
  storedSpec,
  storedStatus: (status = {}) => ({ ...EMPTY_STATUS, ...withoutNulls(status) }),
});

const counted = (name: string, description: string): Column => ({
  name,
  type: 'integer',
  format: '',
  description,
  priority: 0,
});

const labelsText = (labels: Readonly<Record<string, string>> = {}): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',') || NONE;

export const daemonsets: ResourceDescriptor = {
  ...DAEMON_SETS,
  singular: 'daemonset',
  listKind: 'DaemonSetList',
  shortNames: ['ds'],
  categories: ['all'],
  subresources: [{ name: 'status', verbs: ['get', 'patch', 'update'] }],
  columns: [
    nameColumn,
    counted('Desired', 'Nodes that should run a pod.'),
    counted('Current', 'Nodes that run a pod.'),
    counted('Ready', 'Nodes with a pod that is ready.'),
    counted('Up-to-date', 'Nodes that run the pod of the present template.'),
    counted('Available', 'Nodes with a pod that has been ready for minReadySeconds.'),
    textColumn('Node Selector', 'Labels a node must have.'),
    ageColumn,
    textColumn('Containers', 'Names of the containers.', 1),
    textColumn('Images', 'Images of the containers.', 1),
    selectorColumn,
  ],
  row(object: KubeDaemonSet, nowMs) {
    const status = object.status ?? {};
    const { containers = [], nodeSelector } = object.spec?.template?.spec ?? {};
    return [
      object.metadata.name ?? '',
      status.desiredNumberScheduled ?? 0,
      status.currentNumberScheduled ?? 0,
      status.numberReady ?? 0,
      status.updatedNumberScheduled ?? 0,
      status.numberAvailable ?? 0,
      labelsText(nodeSelector),
      ageSince(object.metadata.creationTimestamp, nowMs),
      containers.map((each) => each.name ?? '').join(','),
      containers.map((each) => each.image ?? '').join(','),
      labelsText(object.spec?.selector?.matchLabels),
    ];
  },
  unconditionalUpdate: true,
  createOnUpdate: false,
  ...prepare,
  prepareForCreate: (object: KubeDaemonSet, context) =>
    withTemplateGeneration(prepare.prepareForCreate(object, context), templateGenerationOf(object)),
  prepareForUpdate(next, old: KubeDaemonSet, context) {
    const prepared: KubeDaemonSet = prepare.prepareForUpdate(next, old, context);
    const changed = sameJson(prepared.spec?.template, old.spec?.template) ? 0 : 1;
    return withTemplateGeneration(prepared, templateGenerationOf(old) + changed);
  },
  validate: (object, { old, subresource }) => validateDaemonSet(object, old, subresource),
};
