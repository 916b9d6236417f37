/** The state that the steps of one simulated machine share. */

import { retryAfterWaitMs } from '../../agent/rules/backoff.ts';
import { describeAnswer } from '../../agent/rules/kube-answer.ts';
import type { LeaseTiming } from '../../agent/rules/lease.ts';
import type { ReportState } from '../../agent/rules/status-report.ts';
import type { Clock, RandomSource } from '../../shared/clock.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import type { ApiAnswer, SendRequest } from './api-client.ts';
import type { MachineIdentity } from './names.ts';
import { type MachineUse, useOf } from './usage.ts';

export interface MachineSettings {
  readonly region: string;
  readonly beatIntervalSeconds: number;
  readonly leaseDurationSeconds: number;
  /** The answers to heartbeats may replace both times, as they do for the agent. */
  readonly followsProfile: boolean;
  /** Time between status posts when nothing changed. Seconds. */
  readonly statusIntervalSeconds: number;
  /** Time between reads of the own Node, to find conditions that another client wrote. Seconds. */
  readonly lookIntervalSeconds: number;
}

/** Sums over the whole fleet, for status and benchmarks. */
export interface FleetCounters {
  registrations: number;
  /** Acknowledged lease renewals, creations included. */
  beats: number;
  statusPosts: number;
  /** Renewals refused with 409. */
  conflicts: number;
  failedTurns: number;
}

export interface MachineState {
  /** Name and uid of the Node as registered or last read, for the owner reference of the Lease. */
  owner: KubeNode | undefined;
  /** The Node that was read in this turn, for the status post of the same turn. */
  freshNode: KubeNode | undefined;
  lease: KubeObject | undefined;
  /** The times in the answer to the last heartbeat. */
  answered?: LeaseTiming | undefined;
  report: ReportState;
  /** The next time at which the Node must be read. Epoch milliseconds. */
  lookDueAtMs: number;
  /** Another client may have written the conditions: the Node is read in this turn. */
  mustLook: boolean;
  /** When its power was switched on. Epoch milliseconds. */
  startedAtMs: number;
  /** With the pods that it listed last. */
  use: MachineUse;
  lastBeatAtMs: number | undefined;
  /** Failed turns since the last successful one. */
  failures: number;
  lastFailure: string | undefined;
  /** Version of the pods that were processed last. */
  podsVersion: string;
}

export interface MachineContext {
  readonly identity: MachineIdentity;
  readonly settings: MachineSettings;
  readonly send: SendRequest;
  readonly clock: Clock;
  readonly random: Pick<RandomSource, 'fraction'>;
  readonly counters: FleetCounters;
  readonly state: MachineState;
}

/** `waitMs`: least wait before the next turn, as the server asked. Milliseconds. */
export type Step =
  | { readonly kind: 'done' }
  | { readonly kind: 'nodeMissing' }
  | { readonly kind: 'failed'; readonly why: string; readonly waitMs: number };

export const DONE: Step = { kind: 'done' };
export const NEVER_REPORTED: ReportState = { lastReportAtMs: undefined, delayMs: 0 };

export const initialState = (): MachineState => ({
  owner: undefined,
  freshNode: undefined,
  lease: undefined,
  report: NEVER_REPORTED,
  lookDueAtMs: 0,
  mustLook: false,
  startedAtMs: 0,
  use: useOf([]),
  lastBeatAtMs: undefined,
  failures: 0,
  lastFailure: undefined,
  podsVersion: '',
});

export const failed = ({ random }: MachineContext, what: string, answer: ApiAnswer): Step => ({
  kind: 'failed',
  why: `${what}: ${describeAnswer(answer)}`,
  waitMs: answer.kind === 'answered' ? retryAfterWaitMs(answer, random.fraction()) : 0,
});

export function adoptNode({ state, clock, settings }: MachineContext, node: KubeNode): void {
  const { name = '', uid = '' } = node.metadata;
  state.lookDueAtMs = clock.nowMs() + settings.lookIntervalSeconds * 1_000;
  state.owner = { metadata: { name, uid } };
  state.freshNode = node;
}

/** The Node does not exist: the machine registers again in this turn. */
export function forgetNode({ state }: MachineContext): Step {
  state.owner = undefined;
  state.freshNode = undefined;
  state.lease = undefined;
  return { kind: 'nodeMissing' };
}
