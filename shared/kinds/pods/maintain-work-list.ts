/**
 * Maintains the work list of pod garbage collection after changes of pods and Nodes (work-list-store.ts). It reads the
 * current objects, so repeated or late records write the same rows.
 *
 * A pod may be bound while its Node is deleted. The record that is processed last finds the other object in the tables:
 * a deleted Node looks for pods, a bound pod looks for its Node. Both reads are strongly consistent.
 */

import { parseProviderId } from '../../fleet/instances/provider-id.ts';
import { namesVolumes } from '../../fleet/nodes/attached-volumes.rule.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { WorkDependencies } from '../../ticks/dependencies.ts';
import type { RecordWork } from '../../ticks/item-change.ts';
import type { KubeNode, KubeObject, KubePod, ObjectRef, Volume } from '../types.ts';
import { listedPod } from './collection.rule.ts';
import { isTerminated } from './resource.ts';
import type { PodGcStore } from './work-list-store.ts';

interface ObjectChange<T extends KubeObject> {
  readonly position: number;
  readonly before: T | undefined;
  readonly after: T | undefined;
  /** A retry: `before` has only names, so a comparison decides nothing. */
  readonly isRetry?: boolean;
}

type Dependencies = Pick<WorkDependencies, 'objects'> & { readonly podGc: PodGcStore };

const uidOf = (object: KubeObject | undefined): string | undefined => object?.metadata.uid;
/** The node that a pod is bound to; '' while unbound. */
export const nodeNameOf = (pod: KubePod | undefined): string => pod?.spec?.nodeName ?? '';
export const volumesOf = (pod: KubePod | undefined): readonly Volume[] => pod?.spec?.volumes ?? [];

export const podGcWorks = (
  dependencies: Dependencies,
  {
    nodes,
    pods,
  }: { readonly nodes: readonly ObjectChange<KubeNode>[]; readonly pods: readonly ObjectChange<KubePod>[] },
  nowMs: number,
): RecordWork[] => [
  ...listedPods(dependencies, pods),
  ...leftVolumes(dependencies, pods, nowMs),
  ...missingNodes(dependencies, nodes, nowMs),
];

/** Updates the rows of pods that changed in a way the row shows. */
function listedPods({ objects, podGc }: Dependencies, pods: readonly ObjectChange<KubePod>[]): RecordWork[] {
  const changed = pods.filter(
    ({ before, after, isRetry }) => isRetry === true || !jsonEqual(listedPod(before) ?? null, listedPod(after) ?? null),
  );
  if (changed.length === 0) return [];
  const refs = new Map<string, ObjectRef>();
  for (const { before, after } of changed) {
    const { namespace = '', name = '' } = (after ?? before)!.metadata;
    refs.set(`${namespace}/${name}`, { resource: 'pods', namespace, name });
  }
  return [
    {
      of: changed.map(({ position }) => position),
      run: async () => {
        const wanted = [...refs.values()];
        const stored = await objects.getMany(wanted);
        await Promise.all(
          wanted.map((ref, index) => {
            const row = listedPod(stored[index]);
            return row === undefined ? podGc.dropPod(ref) : podGc.putPod(row);
          }),
        );
      },
    },
  ];
}

/** Nodes that a pod with volumes has left, because it was deleted or terminated. */
function leftVolumes({ podGc }: Dependencies, pods: readonly ObjectChange<KubePod>[], nowMs: number): RecordWork[] {
  const left = new Map<string, number[]>();
  for (const { before, after, position } of pods) {
    const nodeName = nodeNameOf(before);
    if (before === undefined || nodeName === '' || !namesVolumes(volumesOf(before))) continue;
    const gone = uidOf(before) !== uidOf(after);
    const ended = !gone && !isTerminated(before) && isTerminated(after!);
    if (gone || ended) left.set(nodeName, [...(left.get(nodeName) ?? []), position]);
  }
  return [...left].map(([nodeName, of]) => ({ of, run: () => podGc.touchVolumes(nodeName, nowMs) }));
}

/** A deleted Node that pods still name enters the quarantine. A Node that exists leaves it. */
function missingNodes(
  dependencies: Dependencies,
  nodes: readonly ObjectChange<KubeNode>[],
  nowMs: number,
): RecordWork[] {
  const { podGc } = dependencies;
  const positions = new Map<string, number[]>();
  const instances = new Map<string, string>();
  for (const { before, after, position, isRetry } of nodes) {
    const isSame = uidOf(before) === uidOf(after);
    if (isSame && isRetry !== true) continue;
    const name = (after ?? before)?.metadata.name ?? '';
    positions.set(name, [...(positions.get(name) ?? []), position]);
    const provider = parseProviderId(before?.spec?.providerID);
    if (provider.kind === 'ec2' && !isSame) instances.set(name, provider.instanceId);
  }
  return [...positions].map(([nodeName, of]) => ({
    of,
    run: async () => {
      const instanceId = instances.get(nodeName);
      if (instanceId !== undefined) await podGc.noteInstance(nodeName, instanceId, nowMs);
      const { exists, missingSinceMs } = await podGc.readNodeName(nodeName);
      if (exists) {
        // A new name is in no quarantine, and a deletion would be billed as a write all the same.
        if (missingSinceMs !== undefined) await podGc.dropMissing(nodeName, missingSinceMs);
      } else if (await podGc.hasPods(nodeName)) await podGc.putMissing(nodeName, nowMs);
    },
  }));
}
