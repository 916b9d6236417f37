/**
 * Which nodes EC2 is asked about, how often, and what is kept of its answers.
 *
 * Asked about are the nodes that are not Ready, or not initialised yet, and may be EC2 instances. A machine at the edge,
 * without a providerID (or with one of another cloud) and without the uninitialized taint, is none of this rule's business.
 */

import type { CloudAnswer } from '../../domain/cloud/instance.ts';
import { type Ec2Instance, type ProviderId, parseProviderId } from '../../domain/cloud/provider-id.ts';
import type { EventText } from '../../domain/events/event-text.ts';
import type { ConditionStatus, Taint } from '../../domain/kubernetes.ts';
import { hasTaint, removeTaints, TAINT_OUT_OF_SERVICE, type TaintList } from '../../domain/nodes/taint.ts';
import type { Policy } from '../../domain/policy.ts';
import type { Initialisation } from './initialisation.rule.ts';
import {
  AUTOMATIC_OUT_OF_SERVICE_TAINT,
  type CloudDecision,
  type CloudMemory,
  decideAutomaticOutOfService,
  decideCloud,
  SHUTDOWN_TAINT,
} from './rule.ts';

export interface WatchedNode {
  readonly nodeName: string;
  readonly uid: string;
  /** '' when the node has none. */
  readonly providerId: string;
  readonly createdAtMs: number;
  /** Status of the Ready condition; absent counts as Unknown. */
  readonly ready: ConditionStatus | undefined;
  readonly hasShutdownTaint: boolean;
  readonly outOfServiceTaint: 'absent' | 'ours' | 'others';
  readonly uninitialised: boolean;
}

export const hasShutdownTaint = (taints: TaintList): boolean => hasTaint(taints, SHUTDOWN_TAINT);

const isOurOutOfService = ({ key, value, effect }: Readonly<Taint>): boolean =>
  key === AUTOMATIC_OUT_OF_SERVICE_TAINT.key &&
  value === AUTOMATIC_OUT_OF_SERVICE_TAINT.value &&
  effect === AUTOMATIC_OUT_OF_SERVICE_TAINT.effect;

/** Whose out-of-service taint a node carries; people choose key and effect as they like. */
export function outOfServiceTaintOf(taints: TaintList): WatchedNode['outOfServiceTaint'] {
  if (taints.some(isOurOutOfService)) return 'ours';
  return taints.some(({ key }) => key === TAINT_OUT_OF_SERVICE) ? 'others' : 'absent';
}

/** The taints without those that the cloud's word put there; undefined when there is none. For a node that is Ready. */
export function liftCloudTaints(taints: TaintList): Taint[] | undefined {
  const kept = removeTaints(taints, [SHUTDOWN_TAINT]).filter((taint) => !isOurOutOfService(taint));
  return kept.length === taints.length ? undefined : kept;
}

/** Whether a node goes on the list of those EC2 is asked about. */
export function isWatched(node: Pick<WatchedNode, 'providerId' | 'ready' | 'uninitialised'>): boolean {
  if (node.uninitialised) return true;
  if (node.ready === 'True') return false;
  const parsed = parseProviderId(node.providerId);
  return parsed.kind === 'ec2' || parsed.refusal === 'malformed' || parsed.refusal === 'fargate';
}

/** What is kept of the answers about one node uid. */
export interface CloudSeen {
  readonly memory: CloudMemory;
  /** The last answer, as cloudState names it; a failed call does not replace it. */
  readonly state?: string;
  /** Time of the first answer of that kind in a row. */
  readonly sinceMs?: number;
  /** Why it last had to be told that there was no useful answer; absent once there was one. */
  readonly told?: string;
  /** Why the node was last left alone, as the ledger was told; see keptKey. */
  readonly kept?: string;
  /** Addresses as the cloud last told them and as they were written to the Node. JSON. */
  readonly addresses?: string;
}

export const NOTHING_SEEN: CloudSeen = Object.freeze({ memory: Object.freeze({}) });

/** One word for an answer: a metric's dimension, and what tells answers of one kind apart from the next. */
export function cloudState(answer: CloudAnswer): string {
  switch (answer.kind) {
    case 'found':
      return answer.state;
    case 'failed':
      return answer.cause;
    case 'notFound':
    case 'foreign':
    case 'notEc2':
      return answer.kind;
    default:
      return answer satisfies never;
  }
}

/** Missed turns between two answers that still count as two in a row. */
const TURNS_BETWEEN_MAX = 3;

/** How old an answer may be that the next one is to confirm, at a node asked about every so many ticks. Milliseconds. */
export const confirmWithinMs = (everyTicks: number, periodSeconds: number): number =>
  TURNS_BETWEEN_MAX * everyTicks * periodSeconds * 1_000;

/** What follows from an answer for a node as it is. */
export function judgeNode(
  node: Pick<WatchedNode, 'nodeName' | 'ready' | 'createdAtMs' | 'hasShutdownTaint' | 'outOfServiceTaint'>,
  answer: CloudAnswer,
  memory: CloudMemory,
  at: { readonly nowMs: number; readonly policy: Policy; readonly confirmWithinMs: number },
) {
  const { nowMs, policy } = at;
  const judged = decideCloud({ ...node, answer, memory, confirmWithinMs: at.confirmWithinMs }, nowMs, policy);
  const outOfService = decideAutomaticOutOfService({ ...node, answer, memory: judged.memory }, nowMs, policy);
  return { ...judged, outOfService };
}

/** The same as long as a node is left alone for the same reason. An answer that was acted upon is one as well. */
export const keptKey = (answer: CloudAnswer, decision: CloudDecision): string =>
  answer.kind === 'notFound' ? decision.reason : cloudState(answer);

/** What is to be kept after an answer. The same, in value, as before when nothing is new. */
export function seenAfter(
  before: CloudSeen,
  answer: CloudAnswer,
  after: {
    readonly memory: CloudMemory;
    readonly told?: string;
    readonly kept?: string;
    readonly addresses?: string;
    readonly nowMs: number;
  },
): CloudSeen {
  const addresses = after.addresses ?? before.addresses;
  const failed = answer.kind === 'failed';
  const state = failed ? before.state : cloudState(answer);
  const sinceMs = state === before.state ? before.sinceMs : after.nowMs;
  return {
    memory: after.memory,
    ...(state === undefined ? {} : { state }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(after.told === undefined ? {} : { told: after.told }),
    ...(after.kept === undefined ? {} : { kept: after.kept }),
    ...(addresses === undefined ? {} : { addresses }),
  };
}

/**
 * EC2 calls a tick in the mean, each of so many ids; turns go by the hash of a name, so one tick has some more and one some
 * fewer. At 5 s two calls a second: a tenth of what EC2 refills by default. Instances that are missing cost a call each on
 * top, up to a bound (instance-confirmation.ts).
 */
export const CALLS_A_TICK_MAX = 10;
export const IDS_A_CALL_MAX = 200;
const ASKED_A_TICK_MAX = CALLS_A_TICK_MAX * IDS_A_CALL_MAX;
/** Kept for nodes whose answer has long been the same, however many others there are. */
const ASKED_LONG_SAME_MIN = ASKED_A_TICK_MAX / 4;
/** An answer is long the same after so many periods. */
const LONG_SAME_PERIODS = 10;

/**
 * Whether the next answer may well differ from the last: none yet, one that has to be confirmed, a change on its way, or
 * one that is new.
 */
function isOpen(seen: CloudSeen, nowMs: number, periodSeconds: number): boolean {
  if (seen.state === undefined || seen.sinceMs === undefined) return true;
  if (seen.state === 'notFound' || seen.state === 'stopping') return true;
  return nowMs - seen.sinceMs < LONG_SAME_PERIODS * periodSeconds * 1_000;
}

/**
 * Every how many ticks a node is asked about. Up to 2,000 nodes all of them every tick; beyond that first those whose
 * answer is open, then the others with what is left, in turns. At 10,000 nodes that long answer `running` a poll
 * period is 25 s.
 */
export function pollStrides(
  rows: readonly { readonly seen: CloudSeen }[],
  at: { readonly nowMs: number; readonly periodSeconds: number },
): { readonly open: number; readonly longSame: number; strideOf(row: { readonly seen: CloudSeen }): number } {
  const openRows = rows.filter(({ seen }) => isOpen(seen, at.nowMs, at.periodSeconds)).length;
  const others = rows.length - openRows;
  const forOpen = ASKED_A_TICK_MAX - Math.min(others, ASKED_LONG_SAME_MIN);
  const open = Math.max(1, Math.ceil(openRows / forOpen));
  const left = ASKED_A_TICK_MAX - Math.ceil(openRows / open);
  const longSame = Math.max(1, Math.ceil(others / Math.max(1, left)));
  return {
    open,
    longSame,
    strideOf: ({ seen }) => (isOpen(seen, at.nowMs, at.periodSeconds) ? open : longSame),
  };
}

/** The instance to ask for; refused where there is none that EC2 could know. */
export const instanceOf = (node: Pick<WatchedNode, 'providerId'>): ProviderId => parseProviderId(node.providerId);

const WARNING = { type: 'Warning', source: 'cloud-node-lifecycle-controller' } as const;

/** On the Node, when there is no answer to go by; undefined where the answer is one. */
export function cloudCheckFailed(answer: CloudAnswer): EventText | undefined {
  switch (answer.kind) {
    case 'failed':
      return checkFailed(`EC2 gave no answer (${answer.cause}: ${answer.message})`);
    case 'foreign':
    case 'notEc2':
      return checkFailed(answer.reason);
    case 'found':
    case 'notFound':
      return undefined;
    default:
      return answer satisfies never;
  }
}

const checkFailed = (why: string): EventText => ({
  ...WARNING,
  reason: 'CloudCheckFailed',
  message: `Cannot tell whether the instance exists, so the node is kept: ${why}`,
});

/** On the Node, while it stays uninitialised. */
export const initialisationFailed = ({ reason }: Extract<Initialisation, { kind: 'failed' }>): EventText => ({
  type: 'Warning',
  source: 'cloud-node-controller',
  reason: 'InitializationFailed',
  message: `The node keeps its uninitialized taint: ${reason}`,
});

/**
 * What an answer proves about the instance a providerID names. One that names no zone may be of any region, so that EC2 does
 * not know it here proves nothing (D11: account and region right). What EC2 does know by that id is meant, wherever.
 */
export const provenAnswer = (instance: Pick<Ec2Instance, 'region'>, answer: CloudAnswer): CloudAnswer =>
  answer.kind === 'notFound' && instance.region === undefined
    ? { kind: 'foreign', reason: 'providerID names no zone, and EC2 does not know the instance in this region' }
    : answer;
