/**
 * What the answers to requests for a Lease mean (component-helpers/apimachinery/lease/controller.go).
 *
 * An answer counts only when it contains the Lease of this node. A captive portal answers everything with 200.
 */
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { answeredWith, leaseIn } from './kube-answer.ts';

/** PUTs of one renewal, conflicts included (maxUpdateRetries). */
export const RENEWAL_ATTEMPTS_MAX = 5;

export type LeaseRead =
  | { readonly kind: 'found'; readonly lease: KubeObject }
  /** 404: the Lease has to be created. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed' };

export function leaseRead(answer: KubeAnswer, nodeName: string): LeaseRead {
  const lease = answeredWith(answer, 200) ? leaseIn(answer, nodeName) : undefined;
  if (lease !== undefined) return { kind: 'found', lease };
  return { kind: answeredWith(answer, 404) ? 'missing' : 'failed' };
}

export type LeaseWrite =
  /** Counts as a heartbeat. */
  | { readonly kind: 'written'; readonly lease: KubeObject }
  /** 409: another client wrote the Lease. It is read, then renewed. */
  | { readonly kind: 'conflict' }
  /** 404: for a renewal the Lease, for a creation the Node does not exist. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'failed' };

/**
 * The Lease after a renewal. A minimal answer has the new version and the annotations alone; the other fields are as
 * sent.
 */
export function renewedBy(sent: KubeObject, answered: KubeObject): KubeObject {
  if (answered.spec !== undefined) return answered;
  const { annotations: _sent, ...kept } = sent.metadata;
  return { ...sent, metadata: { ...kept, ...answered.metadata } };
}

/** The meaning of an answer to a creation or a renewal. */
export function leaseWrite(answer: KubeAnswer, nodeName: string): LeaseWrite {
  const lease = answeredWith(answer, 200, 201) ? leaseIn(answer, nodeName) : undefined;
  if (lease !== undefined) return { kind: 'written', lease };
  if (answeredWith(answer, 409)) return { kind: 'conflict' };
  return { kind: answeredWith(answer, 404) ? 'missing' : 'failed' };
}

/** Whether an answer shows an outage. A Lease that does not exist, or that changed since, is no sign of one. */
export const isMissedBeat = (answer: KubeAnswer): boolean =>
  answer.kind === 'failed' || (answer.status >= 400 && !answeredWith(answer, 404, 409));
