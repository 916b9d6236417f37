/**
 * L17: one identity never uses more than its share, whatever it sends.
 *
 *   - In no process it computes for longer than its share of the time and one request beyond.
 *   - In calm, requests of others wait for an environment no longer than that, none of them is refused for a limit, and
 *     the gate stays open. The gate evaluates the last grace period. For so long after a storm, ticks that were missing
 *     in it may still close the gate (failingPath without a proven stretch), if no probe has failed since.
 *   - What is refused is recorded as a decision.
 */

import type { ProbeOutcome } from '../../functions/node-monitor/probes.ts';
import { isRenewal } from '../../server/routes.ts';
import { API_LIMITS, HEARTBEAT_LIMITS } from '../../shared/access/request-throttle.ts';
import { fleetKeyOf } from '../../shared/fleet/fleet-store.ts';
import { decisionPartition } from '../../shared/store/layout.ts';
import type { Mark } from '../coverage.ts';
import { type EndpointAnswer, type EndpointRequest, messageOf } from '../endpoint.ts';
import type { Process } from '../faults/processes.ts';
import { GREEDY, GREEDY_COST_MS } from '../greedy-identity.ts';
import type { TimedChange } from '../recent-changes.ts';
import { type Law, type LawContext, seconds } from './law.ts';

const TIME = { heartbeat: HEARTBEAT_LIMITS.node.time, api: API_LIMITS.node.time } as const;
/**
 * The longest wait of a request of another identity, until an environment serves it: the burst of the greedy identity,
 * the request that exceeds it, and one of the same moment. Milliseconds.
 */
export const TURN_MAX_MS = {
  heartbeat: TIME.heartbeat.burstMs + 2 * GREEDY_COST_MS.heartbeat,
  api: TIME.api.burstMs + 2 * GREEDY_COST_MS.api,
} as const;
/**
 * Refusals of a minute are read when it is over and all processes have written theirs, by the next tick. Milliseconds.
 */
const RECORDED_WITHIN_MS = 150_000;
/** Clocks count whole milliseconds. */
const ROUNDING_MS = 10;
const TOO_MANY = 'sends too many requests';

export interface SharesLaw extends Law {
  /** A request of the greedy identity begins to compute for so long. Milliseconds. */
  readonly onSpent: (process: Process, ms: number) => void;
  /** A request of another identity has waited for an environment for so long. Milliseconds. */
  readonly onTurn: (request: EndpointRequest, waitedMs: number) => void;
  readonly onAnswer: (request: EndpointRequest, answer: EndpointAnswer) => void;
  /** The result of a probe, as node-monitor receives it. */
  readonly onProbe: (outcome: ProbeOutcome) => void;
  /** Processes the writes of one step. */
  learn(changes: readonly TimedChange[]): void;
}

export function identitiesKeepTheirShare(context: LawContext, hit: (mark: Mark) => void): SharesLaw {
  const { plan, nowMs, fail: failed } = context;
  const used = new WeakMap<Process, { readonly sinceMs: number; ms: number }>();
  /** First refusal in this calm that no decision is recorded for. */
  let refusedAtMs: number | undefined;
  let wasClosed = false;
  let probeFailedAtMs = Number.NEGATIVE_INFINITY;

  const fail = (message: string): void => failed({ law: 'L17', subjects: [GREEDY], message });
  const isGreedy = (): boolean => plan.severity('costlyRequests') > 0;
  const isCalm = (): boolean => context.calmSinceMs() !== undefined;
  /** The cause is older than this calm. `missedTicks` closes the gate at the end of a gap, which no calm contains. */
  const isOfStorm = (reasons: readonly string[]): boolean => {
    const sinceMs = context.calmSinceMs() ?? nowMs();
    const graceMs = context.most((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
    const isInTime = nowMs() - sinceMs <= graceMs;
    return isInTime && probeFailedAtMs < sinceMs && reasons.every((reason) => reason === 'failingPath');
  };

  return {
    name: 'L17',
    onSpent(process, ms) {
      hit('shares:spent');
      const { share, burstMs } = TIME[process.name === 'heartbeat' ? 'heartbeat' : 'api'];
      const before = used.get(process) ?? { sinceMs: nowMs(), ms: 0 };
      used.set(process, { ...before, ms: before.ms + ms });
      const clockMs = nowMs() - before.sinceMs + context.clockSlackMs(before.sinceMs);
      if (before.ms <= burstMs + share * clockMs + ROUNDING_MS) return;
      const over = `${seconds(before.ms)} of the ${seconds(clockMs)} of a process of ${process.name}, and continues`;
      fail(`${GREEDY} used ${over}: its share is ${100 * share} % after ${seconds(burstMs)}`);
    },
    onTurn(request, waitedMs) {
      if (!isGreedy() || !isCalm()) return;
      const name = isRenewal(request) ? 'heartbeat' : 'api';
      hit(`shares:${name}-turn`);
      if (waitedMs <= TURN_MAX_MS[name]) return;
      fail(`${request.method} ${request.path} of ${request.who} waited ${seconds(waitedMs)} for function ${name}`);
    },
    onAnswer({ who, method, path }, answer) {
      const isRefused = answer.status === 429 && messageOf(answer).includes(TOO_MANY);
      if (who === GREEDY) {
        if (!isRefused) return;
        hit('shares:refused');
        if (isCalm()) refusedAtMs ??= nowMs();
        return;
      }
      if (isGreedy()) hit('shares:answer');
      // A machine with hundreds of bad pods deletes all of them at once.
      if (isRefused && !context.isPoisoned(who)) fail(`${method} ${path} of ${who} was refused: ${messageOf(answer)}`);
    },
    onProbe({ kind }) {
      if (kind === 'failed') probeFailedAtMs = nowMs();
    },
    learn(changes) {
      const isRecorded = changes.some(
        ({ key }) => key.pk.startsWith(decisionPartition()) && key.sk.startsWith(`node.${GREEDY}.`),
      );
      if (!isRecorded) return;
      hit('shares:recorded');
      refusedAtMs = undefined;
    },
    onHappened(happened) {
      if (happened.kind !== 'control') return;
      const { key, newImage } = happened.change;
      if (fleetKeyOf(key)?.kind !== 'state') return;
      const reasons = reasonsOf(newImage?.['gate']);
      const isClosed = reasons.length > 0;
      if (isGreedy() && isCalm()) {
        if (isClosed && !wasClosed && !isOfStorm(reasons)) fail(`the gate closed because of ${reasons.join()}`);
        if (!isClosed) hit('shares:gate-open');
      }
      wasClosed = isClosed;
    },
    onMoment() {
      // A fault may lose what a process wrote of its refusals.
      if (!isCalm()) refusedAtMs = undefined;
      if (refusedAtMs === undefined) return;
      const waitedMs = nowMs() - refusedAtMs;
      if (waitedMs > RECORDED_WITHIN_MS) fail(`no decision says that ${GREEDY} was refused ${seconds(waitedMs)} ago`);
    },
  };
}

const reasonsOf = (gate: unknown): readonly string[] =>
  typeof gate === 'string' ? ((JSON.parse(gate) as { readonly reasons?: readonly string[] }).reasons ?? []) : [];
