/**
 * Evaluates the profiles of a part of the Nodes again (profile-sweep.rule.ts). A tick that is killed repeats its part;
 * two ticks at once write the same profile, and the Node's version refuses the second write.
 *
 * Cost: one read per Node and round, and the write of each Node with another profile. Nothing while the profiles of the
 * policy stay the same.
 */

import type { ProfileSweep } from '../../shared/fleet/fleet-store.ts';
import { changeNode, nodeRef } from '../../shared/fleet/nodes/change-node.ts';
import { withProfile } from '../../shared/fleet/nodes/node-digest.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { inParts, type WorkBudget, workThrough } from '../../shared/ticks/bounded-work.ts';
import type { MonitorDependencies } from './dependencies.ts';
import type { SweepPart } from './profile-sweep.rule.ts';

/** Nodes per read: the limit of BatchGetItem. */
const NODES_PER_READ_MAX = 100;
const WRITE_CONCURRENCY_MAX = 16;

/** Returns the faults of single Nodes: they are tried again in another round. */
export async function sweepProfiles(
  dependencies: MonitorDependencies,
  { stored, part }: { readonly stored: ProfileSweep | undefined; readonly part: SweepPart },
  { nowMs, budget }: { readonly nowMs: number; readonly budget: WorkBudget },
): Promise<readonly unknown[]> {
  const { objects, fleet, policy, log } = dependencies;
  const faults: unknown[] = [];
  let evaluated = 0;
  let changed = 0;
  for (const names of inParts(part.names, NODES_PER_READ_MAX)) {
    if (!budget.hasTime()) break;
    const nodes = (await objects.getMany(names.map(nodeRef))) as readonly (KubeNode | undefined)[];
    const moved = nodes.filter((node) => node !== undefined && withProfile(node, policy.profiles) !== node);
    const outcome = await workThrough(
      moved as readonly KubeNode[],
      { concurrencyMax: WRITE_CONCURRENCY_MAX, budget },
      (node) => setProfile(dependencies, node, nowMs),
    );
    faults.push(...outcome.faults);
    if (outcome.left > 0) break;
    changed += moved.length;
    evaluated += names.length;
  }
  if (evaluated === 0 && part.names.length > 0) return faults;
  const next = part.next(evaluated, faults.length > 0);
  if (changed > 0) log.info('profiles of nodes changed with the policy', { changed, round: next.round });
  await fleet.setProfileSweep(stored, next);
  return faults;
}

async function setProfile(dependencies: MonitorDependencies, first: KubeNode, nowMs: number): Promise<void> {
  const { objects, policy } = dependencies;
  const { name: nodeName = '', uid = '' } = first.metadata;
  const outcome = await changeNode(objects, { nodeName, uid, nowMs, first }, (node) => {
    const next = withProfile(node, policy.profiles);
    return next === node ? undefined : { next };
  });
  if (outcome.kind === 'tooLarge') {
    await reportUnwritable(dependencies, { kind: 'Node', object: outcome.node, what: 'store its profile', nowMs });
  }
}
