/**
 * What a machine accepts from the answer of a relay. The next heartbeat is made from the last answer, and the machine
 * signs it. So a relay that could set labels, owners or a spec in an answer would write them with the machine's
 * signature.
 */
import { defined } from '../../shared/defined.ts';
import { BEAT_INTERVAL_ANNOTATION, LEASE_DURATION_ANNOTATION } from '../../shared/fleet/nodes/node-profile.ts';
import { USAGE_ANNOTATION } from '../../shared/fleet/nodes/node-usage.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { leaseIn } from './kube-answer.ts';
import {
  LOGS_VERSION_ANNOTATION,
  PODS_VERSION_ANNOTATION,
  SERVICES_VERSION_ANNOTATION,
  VOLUMES_VERSION_ANNOTATION,
} from './lease.ts';

/** Annotations that the server sets in an answer, that a machine evaluates, and that it never sends. */
const NEWS = [
  PODS_VERSION_ANNOTATION,
  LOGS_VERSION_ANNOTATION,
  VOLUMES_VERSION_ANNOTATION,
  SERVICES_VERSION_ANNOTATION,
  BEAT_INTERVAL_ANNOTATION,
  LEASE_DURATION_ANNOTATION,
] as const;
const VERSION = /^\d{1,16}$/;

/**
 * The Lease that was sent, with the version and the news of the answer. Undefined if the answer is not this Lease.
 *
 * @param sent the body of the heartbeat
 */
export function relayedLease(answer: KubeAnswer, sent: unknown, nodeName: string): KubeObject | undefined {
  if (answer.kind !== 'answered' || answer.status !== 200) return undefined;
  const { metadata } = leaseIn(answer, nodeName) ?? {};
  const resourceVersion: unknown = metadata?.resourceVersion;
  if (typeof resourceVersion !== 'string' || !VERSION.test(resourceVersion)) return undefined;
  const known = sent as KubeObject;
  const { [USAGE_ANNOTATION]: _usage, ...annotations } = known.metadata.annotations ?? {};
  for (const name of NEWS) {
    const value: unknown = metadata?.annotations?.[name];
    if (typeof value === 'string') annotations[name] = value;
    else delete annotations[name];
  }
  const hasAnnotations = Object.keys(annotations).length > 0;
  const { annotations: _sent, ...kept } = known.metadata;
  return {
    ...known,
    metadata: { ...kept, resourceVersion, ...defined({ annotations: hasAnnotations ? annotations : undefined }) },
  };
}
