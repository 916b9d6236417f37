/** metrics.k8s.io: what nodes use, for `kubectl top nodes`. Pods are not measured: their list is empty. */
import type { NodeUsage } from '../../fleet/nodes/node-usage.ts';
import { nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { READ_ONLY } from '../read-only.ts';
import type { KubeNode, KubeObject } from '../types.ts';

export const METRICS_GROUP = 'metrics.k8s.io';
const VERSION = 'v1beta1';

export interface KubeNodeMetrics extends KubeObject {
  readonly timestamp: string;
  /** A duration as Go writes it. */
  readonly window: string;
  readonly usage: { readonly cpu: string; readonly memory: string };
}

function readOnly(kind: 'NodeMetrics' | 'PodMetrics', resource: string, namespaced: boolean): ResourceDescriptor {
  return {
    group: METRICS_GROUP,
    version: VERSION,
    resource,
    singular: '',
    kind,
    listKind: `${kind}List`,
    shortNames: [],
    categories: [],
    namespaced,
    verbs: ['get', 'list'],
    subresources: [],
    shards: 1,
    columns: [
      nameColumn,
      textColumn('CPU', 'Cores.'),
      textColumn('Memory', 'Working set.'),
      textColumn('Window', 'Length of the interval in which the use was measured.'),
    ],
    row(object) {
      const { metadata, usage, window } = object as KubeNodeMetrics;
      return [metadata.name ?? '', usage?.cpu ?? '', usage?.memory ?? '', window ?? ''];
    },
    selectableFields: { 'metadata.name': ({ metadata }) => metadata.name ?? '' },
    ...READ_ONLY,
  };
}

export const nodemetrics = readOnly('NodeMetrics', 'nodes', false);
export const podmetrics = readOnly('PodMetrics', 'pods', true);

/** @param receivedMs when the last heartbeat was received: the clock of the machine may be wrong */
export const nodeMetricsOf = ({ metadata }: KubeNode, usage: NodeUsage, receivedMs: number): KubeNodeMetrics => ({
  apiVersion: `${METRICS_GROUP}/${VERSION}`,
  kind: nodemetrics.kind,
  metadata: {
    name: metadata.name ?? '',
    ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
    creationTimestamp: formatTime(receivedMs),
  },
  timestamp: formatTime(receivedMs),
  window: goDuration(usage.windowSeconds),
  usage: {
    cpu: `${Math.round(usage.cpuCores * 1_000_000_000)}n`,
    memory: `${Math.round(usage.memoryBytes / 1_024)}Ki`,
  },
});

function goDuration(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  const rest = `${minutes % 60}m${seconds % 60}s`;
  if (minutes >= 60) return `${Math.floor(minutes / 60)}h${rest}`;
  return minutes === 0 ? `${seconds}s` : rest;
}
