/**
 * One simulated machine: the requests of a node to the API, and nothing on the machine itself.
 *
 * A machine registers its Node. Then it repeats turns: it renews the Lease, reports the status when that is due, and
 * processes its pods. A turn is a bounded number of requests and returns the wait until the next one.
 *
 * The rules of the agent (agent/rules) decide what is sent, when, and what an answer means. These things are different,
 * because ten thousand machines live in one process:
 * - One sequence of turns does the work of the agent's three loops. A failed turn is repeated as a whole.
 * - The Node is read after a failure or a gap, and otherwise at an interval that grows with the size of the fleet. The
 *   agent compares its status with its last answer every 10 s.
 * - A failed renewal is repeated after the backoff. The agent first tries four more times without a wait.
 */

import { ENSURE_LEASE_WAITS } from '../../agent/rules/backoff.ts';
import { firstWaitMs, jitteredMs } from '../../agent/rules/lease.ts';
import { backoffMs } from '../../shared/backoff.ts';
import { leaseTimingOf, renewLease } from './lease-renewal.ts';
import {
  DONE,
  initialState,
  type MachineContext,
  type MachineSettings,
  NEVER_REPORTED,
  type Step,
} from './machine-state.ts';
import type { MachineIdentity } from './names.ts';
import { processPods } from './pods.ts';
import { register } from './registration.ts';
import { reportStatusIfDue } from './status-report.ts';

/** Timer functions; tests replace them. */
export interface Timers {
  set(callback: () => void, delayMs: number): unknown;
  clear(handle: unknown): void;
}

/** Maximum number of restarts of one turn, each because the Node did not exist. */
const RESTARTS_MAX = 2;

export interface MachineStatus {
  readonly name: string;
  readonly zone: string;
  /** True while it sends heartbeats; false after `silence`. */
  readonly beating: boolean;
  readonly registered: boolean;
  /** Time of the last acknowledged renewal by the clock of this process. Epoch milliseconds. */
  readonly lastBeatAtMs: number | undefined;
  /** Heartbeat interval: that of its profile once the server has answered. Seconds. */
  readonly beatEverySeconds: number;
  /** Failed turns since the last successful one. */
  readonly failures: number;
  /** The last error of the server, or why it could not be reached. */
  readonly lastFailure: string | undefined;
}

export interface MachineDependencies extends Pick<MachineContext, 'send' | 'clock' | 'random' | 'counters'> {
  readonly timers: Timers;
}

export interface Machine {
  readonly identity: MachineIdentity;
  /** Sends a heartbeat and a status post now, and then regularly. A machine that already beats sends both at once. */
  beat(): void;
  /** Simulates a power cut: no further request is sent. A running request may still arrive. */
  silence(): void;
  status(): MachineStatus;
}

export function createMachine(
  identity: MachineIdentity,
  settings: MachineSettings,
  { timers, ...dependencies }: MachineDependencies,
): Machine {
  const state = initialState();
  const context: MachineContext = { identity, settings, ...dependencies, state };
  let beating = false;
  /** Number of calls of `silence` and `beat`. A turn from before the last call stops. */
  let life = 0;
  let timer: unknown;
  let isFirstTurn = true;

  async function live(ofLife: number): Promise<void> {
    const isStale = (): boolean => ofLife !== life;
    const step = await turn(context, isStale);
    if (isStale()) return;
    const delayMs = delayAfter(context, step, isFirstTurn);
    if (step.kind !== 'failed') isFirstTurn = false;
    timer = timers.set(() => void live(ofLife), delayMs);
  }

  function endLife(): void {
    life += 1;
    if (timer !== undefined) timers.clear(timer);
    timer = undefined;
  }

  return {
    identity,
    beat() {
      endLife();
      if (!beating) state.startedAtMs = dependencies.clock.nowMs();
      beating = true;
      state.report = NEVER_REPORTED;
      state.freshNode = undefined;
      // The controller set its pods not ready during the silence, which changes no version.
      state.podsVersion = '';
      void live(life);
    },
    silence() {
      endLife();
      beating = false;
    },
    status: () => ({
      name: identity.name,
      zone: identity.zone,
      beating,
      registered: state.owner !== undefined,
      lastBeatAtMs: state.lastBeatAtMs,
      beatEverySeconds: leaseTimingOf(settings, state).intervalMs / 1_000,
      failures: state.failures,
      lastFailure: state.lastFailure,
    }),
  };
}

async function turn(context: MachineContext, isStale: () => boolean): Promise<Step> {
  let step: Step = { kind: 'nodeMissing' };
  for (let start = 0; start <= RESTARTS_MAX && step.kind === 'nodeMissing'; start += 1) {
    if (context.state.owner === undefined) {
      step = await register(context);
      if (step.kind === 'failed' || isStale()) return step;
    }
    step = await renewLease(context, isStale);
    if (step.kind === 'done' && !isStale()) step = await reportStatusIfDue(context);
    if (step.kind === 'done' && !isStale()) step = await processPods(context);
    if (isStale()) return DONE;
  }
  if (step.kind !== 'nodeMissing') return step;
  return { kind: 'failed', why: 'the Node was deleted as often as it was registered', waitMs: 0 };
}

/** Milliseconds until the next turn. */
function delayAfter({ identity, settings, state, random, counters }: MachineContext, step: Step, isFirst: boolean) {
  if (step.kind === 'failed') {
    state.lastFailure = step.why;
    state.mustLook = true;
    state.freshNode = undefined;
    counters.failedTurns += 1;
    state.failures += 1;
    return Math.max(step.waitMs, backoffMs(ENSURE_LEASE_WAITS, state.failures - 1));
  }
  state.failures = 0;
  const { intervalMs } = leaseTimingOf(settings, state);
  if (isFirst) return firstWaitMs(intervalMs, identity.name);
  return jitteredMs(intervalMs, random.fraction());
}
