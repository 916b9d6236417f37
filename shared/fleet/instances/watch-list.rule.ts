/**
 * The nodes that EC2 is asked about, how often, and the state kept from its answers.
 *
 * EC2 is asked about nodes that are not Ready or not initialised, and that may be EC2 instances. A machine without an
 * EC2 providerID and without the uninitialized taint is not watched.
 */

import { defined } from '../../defined.ts';
import type { EventText } from '../../events/event-text.ts';
import type { ConditionStatus, Taint } from '../../kubernetes/kubernetes.ts';
import { hasTaint, removeTaints, TAINT_OUT_OF_SERVICE, type TaintList } from '../nodes/taint.ts';
import type { Policy } from '../policy.ts';
import type { Initialisation } from './initialisation.rule.ts';
import type { CloudAnswer } from './instance.ts';
import { type Ec2Instance, type ProviderId, parseProviderId } from './provider-id.ts';
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

/** Who set the out-of-service taint of a node. Users choose value and effect freely. */
export function outOfServiceTaintOf(taints: TaintList): WatchedNode['outOfServiceTaint'] {
  if (taints.some(isOurOutOfService)) return 'ours';
  return taints.some(({ key }) => key === TAINT_OUT_OF_SERVICE) ? 'others' : 'absent';
}

/** The taints without those that cloud-node added; undefined when there are none. For a node that is Ready. */
export function liftCloudTaints(taints: TaintList): Taint[] | undefined {
  const kept = removeTaints(taints, [SHUTDOWN_TAINT]).filter((taint) => !isOurOutOfService(taint));
  return kept.length === taints.length ? undefined : kept;
}

/** Whether a node is on the watch list. */
export function isWatched(node: Pick<WatchedNode, 'providerId' | 'ready' | 'uninitialised'>): boolean {
  if (node.uninitialised) return true;
  if (node.ready === 'True') return false;
  const parsed = parseProviderId(node.providerId);
  return parsed.kind === 'ec2' || parsed.refusal === 'malformed' || parsed.refusal === 'fargate';
}

/** State kept from the answers about one node uid. The field names are stored. */
export interface CloudSeen {
  readonly memory: CloudMemory;
  /** cloudState of the last answer. A failed call does not replace it. */
  readonly state?: string;
  /** Time of the first of the consecutive answers with this state. Epoch milliseconds. */
  readonly sinceMs?: number;
  /** Key of the failure that was last reported. Absent after an answer that succeeded. */
  readonly reported?: string;
  /** Key of the last recorded reason to keep the node; see keptKey. */
  readonly kept?: string;
  /** Addresses that the cloud last returned and that were written to the Node. JSON. */
  readonly addresses?: string;
  /** When the row was last compared with its Node, or got its first answer. Epoch milliseconds. */
  readonly comparedMs?: number;
}

export const NOTHING_SEEN: CloudSeen = Object.freeze({ memory: Object.freeze({}) });

/** The kind of an answer: a metric dimension, and the key that compares consecutive answers. */
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

/** Polling intervals between two answers that still count as consecutive. */
const INTERVALS_BETWEEN_ANSWERS_MAX = 3;

/** Maximum age of an answer that the next one can confirm, for a node polled every `everyTicks`. Milliseconds. */
export const confirmWithinMs = (everyTicks: number, periodSeconds: number): number =>
  INTERVALS_BETWEEN_ANSWERS_MAX * everyTicks * periodSeconds * 1_000;

/** The decisions that follow from an answer for the current state of a node. */
export function evaluateNode(
  node: Pick<WatchedNode, 'nodeName' | 'ready' | 'createdAtMs' | 'hasShutdownTaint' | 'outOfServiceTaint'>,
  answer: CloudAnswer,
  memory: CloudMemory,
  at: { readonly nowMs: number; readonly policy: Policy; readonly confirmWithinMs: number },
) {
  const { nowMs, policy } = at;
  const evaluated = decideCloud({ ...node, answer, memory, confirmWithinMs: at.confirmWithinMs }, nowMs, policy);
  const outOfService = decideAutomaticOutOfService({ ...node, answer, memory: evaluated.memory }, nowMs, policy);
  return { ...evaluated, outOfService };
}

/** Constant while a node is kept for the same reason. */
export const keptKey = (answer: CloudAnswer, decision: CloudDecision): string =>
  answer.kind === 'notFound' ? decision.reason : cloudState(answer);

/** The state to store after an answer. Equal to the previous state when nothing changed. */
export function seenAfter(
  before: CloudSeen,
  answer: CloudAnswer,
  after: {
    readonly memory: CloudMemory;
    readonly reported?: string;
    readonly kept?: string;
    readonly addresses?: string;
    /** Whether the row was compared with its Node. */
    readonly isCompared?: boolean;
    readonly nowMs: number;
  },
): CloudSeen {
  const addresses = after.addresses ?? before.addresses;
  const failed = answer.kind === 'failed';
  const state = failed ? before.state : cloudState(answer);
  const sinceMs = state === before.state ? before.sinceMs : after.nowMs;
  const comparedMs = after.isCompared === true ? after.nowMs : (before.comparedMs ?? after.nowMs);
  return {
    memory: after.memory,
    comparedMs,
    ...defined({ state, sinceMs, reported: after.reported, kept: after.kept, addresses }),
  };
}

/**
 * Mean number of EC2 calls per tick, each with up to `IDS_PER_CALL_MAX` ids. A tick processes whole groups of nodes
 * (poll-plan.rule.ts), so single ticks have more or fewer. At 5 s that is two calls per second, a tenth of EC2's
 * default refill rate. Each missing instance costs one more call, up to a bound (instance-confirmation.ts).
 */
export const CALLS_PER_TICK_MAX = 10;
export const IDS_PER_CALL_MAX = 200;
/** Nodes polled per tick. */
const POLLED_PER_TICK_MAX = CALLS_PER_TICK_MAX * IDS_PER_CALL_MAX;
/** The part of POLLED_PER_TICK_MAX that is reserved for nodes with an unchanged answer. */
const POLLED_UNCHANGED_MIN = POLLED_PER_TICK_MAX / 4;
/** An answer counts as unchanged after this many periods. */
const LONG_SAME_PERIODS = 10;

/**
 * Whether the next answer is likely to differ from the last: there is none yet, it must be confirmed, a transition is
 * in progress, or it is new.
 */
function isOpen(seen: CloudSeen, nowMs: number, periodSeconds: number): boolean {
  if (seen.sinceMs === undefined) return true;
  if (seen.state === 'notFound' || seen.state === 'stopping') return true;
  return nowMs - seen.sinceMs < LONG_SAME_PERIODS * periodSeconds * 1_000;
}

/** `open`: the next answer is likely to differ from the last. */
export type PollClass = 'open' | 'longSame';

export interface PollStrides extends Readonly<Record<PollClass, number>> {
  /** Whether every node is polled at every tick. */
  readonly areAllDue: boolean;
  /** Nodes per tick, of those that are not due at every tick. */
  readonly perTick: Readonly<Record<PollClass, number>>;
  classOf(row: { readonly seen: CloudSeen }): PollClass;
  strideOf(row: { readonly seen: CloudSeen }): number;
}

/**
 * Polling interval of each class of nodes, in ticks. Up to 2,000 nodes are polled every tick. Beyond that, nodes with
 * an open answer come first. The others share the remaining capacity. With 10,000 nodes that stay `running` it is 25 s.
 */
export function pollStrides(
  rows: readonly { readonly seen: CloudSeen }[],
  at: { readonly nowMs: number; readonly periodSeconds: number },
): PollStrides {
  const classOf = ({ seen }: { readonly seen: CloudSeen }): PollClass =>
    isOpen(seen, at.nowMs, at.periodSeconds) ? 'open' : 'longSame';
  const openRows = rows.filter((row) => classOf(row) === 'open').length;
  const others = rows.length - openRows;
  const forOpen = POLLED_PER_TICK_MAX - Math.min(others, POLLED_UNCHANGED_MIN);
  const open = Math.max(1, Math.ceil(openRows / forOpen));
  const left = Math.max(1, POLLED_PER_TICK_MAX - Math.ceil(openRows / open));
  const longSame = Math.max(1, Math.ceil(others / left));
  const strides = { open, longSame };
  return {
    ...strides,
    areAllDue: open === 1 && longSame === 1,
    perTick: { open: Math.max(1, Math.ceil(openRows / open)), longSame: left },
    classOf,
    strideOf: (row) => strides[classOf(row)],
  };
}

/** The EC2 instance of the node, or the reason why it has none. */
export const instanceOf = (node: Pick<WatchedNode, 'providerId'>): ProviderId => parseProviderId(node.providerId);

const WARNING = { type: 'Warning', source: 'cloud-node-lifecycle-controller' } as const;

/** Event on the Node when an answer proves nothing; undefined otherwise. */
export function cloudCheckFailed(answer: CloudAnswer): EventText | undefined {
  switch (answer.kind) {
    case 'failed':
      return checkFailed(`EC2 request failed (${answer.cause}: ${answer.message})`);
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
  message: `Node is kept because its instance could not be checked: ${why}`,
});

/** Event on the Node while it stays uninitialised. */
export const initialisationFailed = ({ reason }: Extract<Initialisation, { kind: 'failed' }>): EventText => ({
  type: 'Warning',
  source: 'cloud-node-controller',
  reason: 'InitializationFailed',
  message: `The node keeps its uninitialized taint: ${reason}`,
});

/**
 * What an answer proves about the instance that a providerID names. Without a zone the instance may be in any region: a
 * `notFound` in this region proves nothing (D11). An answer that EC2 finds the instance counts in any case.
 */
export const provenAnswer = (instance: Pick<Ec2Instance, 'region'>, answer: CloudAnswer): CloudAnswer =>
  answer.kind === 'notFound' && instance.region === undefined
    ? { kind: 'foreign', reason: 'providerID names no zone, and EC2 does not know the instance in this region' }
    : answer;
