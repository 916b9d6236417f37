/**
 * The Nodes that a stopped release waits for: those of nodes that update or failed.
 *
 * Cost: two read units for each Node, once per minute and process, however many nodes ask. A question without this
 * memory would cost a fleet as much as a list of its Nodes per minute.
 */

import type { Holder } from '../../../shared/agents/release-rollout.ts';
import type { ReadDependencies } from '../../../shared/api/call.ts';
import { AGENT_VERSION_ANNOTATION } from '../../../shared/fleet/nodes/agent-version.ts';
import { nodes } from '../../../shared/kinds/registry.ts';
import type { KubeNode } from '../../../shared/kinds/types.ts';

/** How long a Node is remembered. Milliseconds. */
export const HOLDERS_MS = 60_000;
/** Nodes in memory: those of all releases in a minute. The least recent one is dropped first. */
const HOLDERS_MAX = 1_000;

/** The Nodes with these names, in this order. undefined is a Node that does not exist. */
export type ReadHolders = (names: readonly string[], nowMs: number) => Promise<readonly (Holder | undefined)[]>;

export function releaseHolders({ storageOf }: Pick<ReadDependencies, 'storageOf'>): ReadHolders {
  const known = new Map<string, { readonly slot: number; readonly holder: Holder }>();

  async function read(name: string, slot: number): Promise<Holder | undefined> {
    const cached = known.get(name);
    if (cached?.slot === slot) return cached.holder;
    known.delete(name);
    const node: KubeNode | undefined = await storageOf(nodes).get('', name);
    if (node === undefined) return undefined;
    const { labels = {}, annotations = {} } = node.metadata;
    const holder = { labels, version: annotations[AGENT_VERSION_ANNOTATION] };
    known.set(name, { slot, holder });
    if (known.size > HOLDERS_MAX) known.delete(known.keys().next().value as string);
    return holder;
  }

  return (names, nowMs) => {
    const slot = Math.floor(nowMs / HOLDERS_MS);
    return Promise.all(names.map((name) => read(name, slot)));
  };
}
