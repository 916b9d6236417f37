/**
 * What the monitor knows of a node: the digest kept beside its lease in the `health` table, one small item a node.
 * A tick reads only this; Node objects are read for nodes about which something must be done.
 */
import type { ConditionStatus } from '../kubernetes.ts';

export interface NodeHealth {
  readonly nodeName: string;
  /** uid of the Node this digest speaks of. A re-created Node starts afresh (D2). */
  readonly uid: string;
  /** Zone key, see zone.ts; '' for nodes without zone and region labels. */
  readonly zone: string;
  /** Status of the Ready condition as last written, by whoever; absent when the Node has none. */
  readonly ready: ConditionStatus | undefined;
  /** Carries the label node.kubernetes.io/exclude-disruption. */
  readonly excluded: boolean;
  /** Something is to be looked at on its next beat: it is not Ready, or carries taints of ours. */
  readonly suspect: boolean;
  /** Which NoExecute taints of ours the Node carries, as last written. */
  readonly noExecute: { readonly notReady: boolean; readonly unreachable: boolean };
  /** Creation of the Node, server time. */
  readonly createdAtMs: number;
  /** Server receipt time of the last lease renewal for this uid's time; absent when none was received. */
  readonly renewedAtMs: number | undefined;
  /** Server receipt time of the last status post; absent when none was received. */
  readonly statusAtMs: number | undefined;
  /**
   * When we marked the node Unknown for its silence; goes away with the next status post. A node that has beaten since,
   * and whose status is only on its way, is not tainted for a silence that is over.
   */
  readonly markedAtMs?: number | undefined;
  /** Pods of this node are still to be set not ready, because writing some of them failed after the mark. */
  readonly podsToMark?: boolean | undefined;
}
