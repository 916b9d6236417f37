/**
 * What has happened so far, counted from the changes: nodes tainted by us, pods deleted by anyone and created by us,
 * nodes removed by us.
 */
import { TAINT_NOT_READY, TAINT_UNREACHABLE } from '../shared/fleet/nodes/taint.ts';
import type { KubeNode } from '../shared/kinds/types.ts';
import type { ViewChanges } from './cluster-view.ts';

/** The writer of a change. */
export type Actor = 'endpoint' | 'controllers';

export interface Tally {
  readonly tainted: number;
  readonly podsDeleted: number;
  readonly podsCreated: number;
  readonly nodesDeleted: number;
  count(changes: ViewChanges, actor: Actor): void;
}

const carriesOurs = (node: KubeNode | undefined): boolean =>
  (node?.spec?.taints ?? []).some(
    ({ key, effect }) => effect === 'NoExecute' && (key === TAINT_NOT_READY || key === TAINT_UNREACHABLE),
  );

export function createTally(): Tally {
  const tainted = new Set<string>();
  const podsDeleted = new Set<string>();
  const podsCreated = new Set<string>();
  const nodesDeleted = new Set<string>();
  return {
    get tainted() {
      return tainted.size;
    },
    get podsDeleted() {
      return podsDeleted.size;
    },
    get podsCreated() {
      return podsCreated.size;
    },
    get nodesDeleted() {
      return nodesDeleted.size;
    },
    count({ nodes, pods }, actor) {
      for (const { before, after } of nodes) {
        if (actor !== 'controllers') break;
        if (after === undefined) nodesDeleted.add(before?.metadata.uid ?? '');
        else if (carriesOurs(after) && !carriesOurs(before)) tainted.add(after.metadata.uid ?? '');
      }
      for (const { before, after } of pods) {
        const pod = after ?? before;
        if (before === undefined && actor === 'controllers') podsCreated.add(pod?.metadata.uid ?? '');
        if (after === undefined || after.metadata.deletionTimestamp !== undefined) {
          podsDeleted.add(pod?.metadata.uid ?? '');
        }
      }
    },
  };
}
