/**
 * The digest of a node: one small item per node beside its Lease in the `health` table. A tick reads only digests; it
 * reads a Node object only when it changes it.
 */
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';

export interface NodeHealth {
  readonly nodeName: string;
  /** uid of the Node. A re-created Node gets a new digest (D2). */
  readonly uid: string;
  /** Zone key, see zone.ts; '' for nodes without zone and region labels. */
  readonly zone: string;
  /** Stored status of the Ready condition; undefined when the Node has none. */
  readonly ready: ConditionStatus | undefined;
  /** Whether the Node has the label node.kubernetes.io/exclude-disruption. */
  readonly excluded: boolean;
  /** Its next heartbeat needs processing: the node is not Ready, or carries taints of ours. */
  readonly suspect: boolean;
  /** Which of our two NoExecute taints the stored Node has. */
  readonly noExecute: { readonly notReady: boolean; readonly unreachable: boolean };
  /** Name of the profile; absent: `default`. A name that the policy no longer has means `default`, too. */
  readonly profile?: string | undefined;
  /** When the profile last changed, server time; absent: never since the Node was created. */
  readonly profileChangedAtMs?: number | undefined;
  /** Promised end of its planned silence; absent without a promise. It may be over. */
  readonly plannedUntilMs?: number | undefined;
  /** When its last promise ended early or was removed, server time: silence before it does not count. */
  readonly silenceEndedAtMs?: number | undefined;
  /** Its last marks, packed (flapping.ts); absent: it was never marked. */
  readonly flaps?: Uint8Array | undefined;
  /** Duration that the machine wrote into its Lease. Seconds. Shown in an event, and never decided on. */
  readonly leaseDurationSeconds?: number | undefined;
  /** Creation of the Node, server time. */
  readonly createdAtMs: number;
  /** Server receipt time of the last Lease renewal since the Node was created; undefined when there was none. */
  readonly renewedAtMs: number | undefined;
  /** Server receipt time of the last status post; absent when none was received. */
  readonly statusAtMs: number | undefined;
  /**
   * When node-monitor marked the node Unknown; removed by the next status post. A node that has sent a heartbeat since,
   * but no status yet, is not tainted.
   */
  readonly markedAtMs?: number | undefined;
  /** Pods of this node are still to be marked not ready, because writing some of them failed after the mark. */
  readonly podsToMark?: boolean | undefined;
}
