/**
 * The zones of nodes, for endpoints. A Node is read when a pod of it is first seen, and again after KNOWN_FOR_MS. So a
 * Service of a hundred machines does not read a hundred Nodes for each change of a pod. After a machine is moved to
 * another zone, an endpoint has the former zone until the first change of its Service after that time.
 */
import type { Clock } from '../../../shared/clock.ts';
import { nodeRef } from '../../../shared/fleet/nodes/change-node.ts';
import { serviceZoneOf } from '../../../shared/fleet/nodes/service-readers.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';

const KNOWN_FOR_MS = 600_000;
/** Nodes in memory. The oldest are dropped first. */
const KNOWN_MAX = 20_000;

/** By node name. A node without a zone has no entry. */
export type Zones = ReadonlyMap<string, string>;

export interface NodeZones {
  of(nodeNames: Iterable<string>): Promise<Zones>;
}

export function nodeZones(objects: Pick<ObjectStore, 'getMany'>, clock: Clock): NodeZones {
  const known = new Map<string, { readonly atMs: number; readonly zone: string | undefined }>();
  return {
    async of(nodeNames) {
      const names = [...new Set(nodeNames)];
      const nowMs = clock.nowMs();
      const unknown = names.filter((name) => nowMs - (known.get(name)?.atMs ?? -KNOWN_FOR_MS) >= KNOWN_FOR_MS);
      const nodes = unknown.length === 0 ? [] : await objects.getMany(unknown.map(nodeRef));
      const zones = new Map<string, string>();
      for (const [index, name] of unknown.entries()) {
        known.delete(name);
        known.set(name, { atMs: nowMs, zone: serviceZoneOf(nodes[index]?.metadata.labels) });
      }
      for (const name of names) {
        const zone = known.get(name)?.zone;
        if (zone !== undefined) zones.set(name, zone);
      }
      while (known.size > KNOWN_MAX) known.delete(known.keys().next().value as string);
      return zones;
    },
  };
}
