import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import type { ResourceDescriptor, Subresource } from '../descriptor.ts';
import type { KubePod } from '../types.ts';
import { preparePod } from './defaults.ts';
import { PODS } from './resource.ts';
import { readinessGatesCell, summarisePod } from './row.ts';
import { validatePod } from './validate.ts';

/** Its applied fields are those of podResizeStrategy in upstream pkg/registry/core/pod/strategy.go. */
const RESIZE: Subresource = {
  name: 'resize',
  verbs: ['get', 'patch', 'update'],
  changesUse: true,
  appliedFields: [/^f:spec$/, /^f:(c|initC)ontainers$/, /^/, /^f:(resources|resizePolicy)$/],
};

export const pods: ResourceDescriptor = {
  ...PODS,
  singular: 'pod',
  listKind: 'PodList',
  shortNames: ['po'],
  categories: ['all'],
  subresources: [
    { name: 'binding', kind: 'Binding', verbs: ['create'] },
    // drain evicts only when it finds exactly this entry.
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
    { name: 'log', verbs: ['get'] },
    RESIZE,
    { name: 'status', verbs: ['get', 'patch', 'update'] },
  ],
  columns: [
    nameColumn,
    textColumn('Ready', 'Containers that are ready, of how many.'),
    textColumn('Status', 'What the pod is doing, or what keeps it from it.'),
    textColumn('Restarts', 'Restarts of its containers, and when the last was.'),
    ageColumn,
    textColumn('IP', 'Address of the pod.', 1),
    textColumn('Node', 'Node the pod is bound to.', 1),
    textColumn('Nominated Node', 'Node that is being cleared for the pod.', 1),
    textColumn('Readiness Gates', 'Readiness gates that are open, of how many.', 1),
  ],
  row(object: KubePod, nowMs) {
    const summary = summarisePod(object, nowMs);
    return [
      object.metadata.name ?? '',
      summary.ready,
      summary.status,
      summary.restarts,
      ageSince(object.metadata.creationTimestamp, nowMs),
      object.status?.podIP || NONE,
      object.spec?.nodeName || NONE,
      object.status?.nominatedNodeName || NONE,
      readinessGatesCell(object),
    ];
  },
  unconditionalUpdate: true,
  createOnUpdate: false,
  ...preparePod,
  validate: (object, { old, subresource }) => validatePod(object, old, subresource),
};
