/**
 * The read-only storage of NodeMetrics: the Nodes of a page, and the usage in the rows of their Leases. A page of 500
 * nodes reads their rows for half a read unit each, besides the Nodes.
 */

import type { KindStorage } from '../../api/kind-storage.ts';
import { emptyStorage } from '../../api/object-storage.ts';
import { type ResourceStorage, readOnlyStorage } from '../../api/resource-storage.ts';
import type { Clock } from '../../clock.ts';
import { parseUsage, USAGE_ANNOTATION } from '../../fleet/nodes/node-usage.ts';
import type { Item, ItemReader, ItemStore } from '../../store/item-store.ts';
import { healthKey, RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import { leaseOf } from '../leases/lease-record.ts';
import { nodes } from '../nodes/serve.ts';
import { pods } from '../pods/serve.ts';
import type { KubeNode } from '../types.ts';
import { type KubeNodeMetrics, nodeMetricsOf, nodemetrics, podmetrics } from './serve.ts';

/** A node that was silent for longer has no metrics, as with the metrics server after a failed scrape. */
const FRESH_MS = 120_000;

export interface NodeMetricsSources {
  readonly nodes: Pick<ResourceStorage, 'get' | 'list'>;
  readonly items: ItemReader & Pick<ItemStore, 'getMany'>;
  readonly clock: Clock;
}

export function nodeMetricsStorage({ nodes, items, clock }: NodeMetricsSources): ResourceStorage {
  async function metricsOf(read: readonly KubeNode[]): Promise<readonly KubeNodeMetrics[]> {
    const keys = read.map(({ metadata }) => healthKey(metadata.name ?? ''));
    const rows = await items.getMany(keys, { consistent: false });
    return read.flatMap((node, index) => metricsIn(node, rows[index], clock.nowMs()) ?? []);
  }
  return readOnlyStorage({
    async get(_namespace, name) {
      const node = await nodes.get('', name);
      return node === undefined ? undefined : (await metricsOf([node as KubeNode]))[0];
    },
    async list(query) {
      const { items: read, ...page } = await nodes.list(query);
      return { ...page, items: await metricsOf(read as readonly KubeNode[]) };
    },
    listVersion: async () => String(clock.nowMs() * RESOURCE_VERSIONS_PER_MS),
  });
}

function metricsIn(node: KubeNode, row: Item | undefined, nowMs: number): KubeNodeMetrics | undefined {
  const usage = row === undefined ? undefined : parseUsage(leaseOf(row)?.metadata.annotations?.[USAGE_ANNOTATION]);
  const receivedMs = Number(row?.['r'] ?? 0);
  return usage === undefined || nowMs - receivedMs > FRESH_MS ? undefined : nodeMetricsOf(node, usage, receivedMs);
}

export const metricsStorages: readonly KindStorage[] = [
  [nodemetrics, (_, { storageOf, items, clock }) => nodeMetricsStorage({ nodes: storageOf(nodes), items, clock })],
  [podmetrics, (_, { versionOf }) => emptyStorage(() => versionOf(pods))],
];
