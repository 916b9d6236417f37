/**
 * Deletes the rows of `use` (node-use.ts) of nodes that no longer exist: a fleet with changing nodes would otherwise
 * leave rows that each new process of the scheduler reads.
 *
 * `v` begins again with a new row. Why no binding compares it with the version of an earlier row:
 *
 *   1. A row is deleted only while its Node does not exist: a condition of the transaction.
 *   2. So the row that exists at a binding began after the Node was created, or before it without a deletion since.
 *   3. The copy forgets the version when it reads a Node with another uid, and reads Nodes before versions in a list.
 *      So it compares only a version that was read while this Node existed, or none (0).
 *   4. With none, the row must not exist at the commit. Pods of earlier rows were bound before the Node was created.
 *      The copy reads pods after Nodes, so it has them.
 *
 * Cost: 4 write units per row, once.
 */

import { nodeAbsent } from '../../shared/fleet/nodes/change-node.ts';
import { dropUse } from '../../shared/fleet/nodes/node-use.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import type { ClusterCopy } from './cluster-copy.ts';

/** Rows that one pass deletes. */
const ROWS_MAX = 25;

/** A refused deletion is left to a later process. */
export async function dropUnusedRows({ items }: Pick<WorkDependencies, 'items'>, copy: ClusterCopy): Promise<void> {
  for (const { nodeName, version } of copy.unusedRows().slice(0, ROWS_MAX)) {
    const outcome = await items.transact([dropUse(nodeName, version), nodeAbsent(nodeName)]);
    if (outcome.kind === 'written') copy.rowDropped(nodeName);
  }
}
