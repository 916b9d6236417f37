/**
 * What the hub of a site asks of the cluster after it has decided about a pod (decision 0068):
 *
 *   POST /apis/nodekeeper.dev/v1alpha1/sitemoves
 *     request   SiteMove
 *     response  { outcome: done }: the copy is in the place of the pod; without a copy, the pod is deleted
 *               { outcome: refused, reason }: the cluster has decided otherwise
 *
 * It may be repeated. The cluster records both decisions: that of the hub with its time, and its own.
 */
export const SITE_MOVES = { group: 'nodekeeper.dev', version: 'v1alpha1', resource: 'sitemoves' } as const;

export interface SiteMove {
  readonly namespace: string;
  /** Of the original. Copies are named after it. */
  readonly name: string;
  /** The uid of the original first, then those of copies that were moved on. */
  readonly from: readonly string[];
  /** Absent: no machine runs the pod, and none will. The cluster deletes it. */
  readonly copy?: { readonly uid: string; readonly nodeName: string };
  /** When and why the hub decided, for people. The time is by its clock, RFC 3339. */
  readonly decidedAt: string;
  readonly why: string;
}

export type SiteMoveAnswer = { readonly outcome: 'done' } | { readonly outcome: 'refused'; readonly reason: string };
