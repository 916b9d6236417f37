/**
 * Nodes and pods as a watch cache has them, kept from the record of changes: what machines see of themselves, and where
 * the timeline and the counts come from.
 */

import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import type { MemoryItemStore } from '../shared/store/memory/item-store.ts';
import { storedObject } from './laws/stored-object.ts';

const NODES_PREFIX = 'o#nodes#';
const PODS_PREFIX = 'o#pods#';
const WORKLOADS = /^o#(deployments|replicasets|daemonsets|statefulsets|jobs)#/;

export interface ObjectChange<T extends KubeObject = KubeObject> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

export interface ViewChanges {
  readonly nodes: readonly ObjectChange<KubeNode>[];
  readonly pods: readonly ObjectChange[];
  /** Deployments, ReplicaSets, DaemonSets, StatefulSets and Jobs. */
  readonly workloads: readonly ObjectChange[];
}

export interface ClusterView {
  readonly nodes: ReadonlyMap<string, KubeNode>;
  /** By `namespace/name`. */
  readonly pods: ReadonlyMap<string, KubeObject>;
  podsOf(nodeName: string): Iterable<KubeObject>;
  /** Reads the changes since the last call and returns them in order. */
  refresh(): ViewChanges;
  /** Sequence of the last change read from the `objects` table. */
  readonly seen: number;
}

export const podKey = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;
export const nodeNameOf = (pod: KubeObject): string => (pod.spec?.['nodeName'] as string | undefined) ?? '';

export function clusterView(record: MemoryItemStore): ClusterView {
  const nodes = new Map<string, KubeNode>();
  const pods = new Map<string, KubeObject>();
  const byNode = new Map<string, Map<string, KubeObject>>();
  let seen = 0;

  const remember = (before: KubeObject | undefined, after: KubeObject | undefined): void => {
    if (before !== undefined) {
      pods.delete(podKey(before));
      byNode.get(nodeNameOf(before))?.delete(podKey(before));
    }
    if (after === undefined) return;
    pods.set(podKey(after), after);
    const nodeName = nodeNameOf(after);
    let ofNode = byNode.get(nodeName);
    if (ofNode === undefined) {
      ofNode = new Map();
      byNode.set(nodeName, ofNode);
    }
    ofNode.set(podKey(after), after);
  };

  return {
    nodes,
    pods,
    get seen() {
      return seen;
    },
    podsOf: (nodeName) => byNode.get(nodeName)?.values() ?? [],
    refresh() {
      const changed = {
        nodes: [] as ObjectChange<KubeNode>[],
        pods: [] as ObjectChange[],
        workloads: [] as ObjectChange[],
      };
      for (const { sequence, key, oldImage, newImage } of record.changes('objects', seen)) {
        seen = sequence;
        if (WORKLOADS.test(key.pk)) {
          const [before, after] = [oldImage, newImage].map((image) =>
            image === undefined ? undefined : storedObject(image),
          );
          changed.workloads.push({ before, after });
          continue;
        }
        const isNode = key.pk.startsWith(NODES_PREFIX);
        if (!isNode && !key.pk.startsWith(PODS_PREFIX)) continue;
        const after = newImage === undefined ? undefined : storedObject(newImage);
        if (isNode) {
          const before = nodes.get(key.sk);
          if (after === undefined) nodes.delete(key.sk);
          else nodes.set(key.sk, after as KubeNode);
          changed.nodes.push({ before, after: after as KubeNode | undefined });
        } else {
          const before = pods.get(key.sk);
          remember(before, after);
          changed.pods.push({ before, after });
        }
      }
      return changed;
    },
  };
}
