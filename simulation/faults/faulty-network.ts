/** The network between the clients and the functions that serve their requests, with faults. */

import { isRenewal } from '../../server/routes.ts';
import type { EndpointAnswer, EndpointRequest } from '../endpoint.ts';
import { never, type VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import type { Functions } from './processes.ts';

/** One-way latency. Milliseconds. */
const LATENCY_MIN_MS = 5;
const LATENCY_MAX_MS = 40;
/** Request timeout of a machine. Milliseconds. */
const TIMEOUT_MS = 3_000;
const LATE_MAX_MS = 15_000;
const DUPLICATE_AFTER_MAX_MS = 4_000;
/** A URL in an outage of this severity throttles. In a worse one it does not answer. */
const THROTTLING_BELOW = 0.6;

const NO_ANSWER: EndpointAnswer = { status: 504, body: { kind: 'Status', message: 'no answer' } };
const THROTTLED: EndpointAnswer = { status: 429, body: { kind: 'Status', message: 'too many requests' } };
const UNAVAILABLE: EndpointAnswer = { status: 503, body: { kind: 'Status', message: 'the endpoint is out' } };

/** The sender of a request. */
export interface Sender {
  /** Zone of a machine. Absent: not a machine, so network faults do not apply. */
  readonly zone?: string;
  /** Whether the sender was switched off in the meantime. Its requests then never return. */
  isGone(): boolean;
}

export type Send = (request: EndpointRequest, sender: Sender) => Promise<EndpointAnswer>;

export function faultyNetwork(options: {
  readonly functions: Functions;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  /** The zone that a network partition separates from the API; undefined without one. */
  readonly cutZone: () => string | undefined;
  /** After this time an environment began to serve a request. Milliseconds. */
  readonly onTurn: (request: EndpointRequest, waitedMs: number) => void;
  readonly onAnswer: (request: EndpointRequest, answer: EndpointAnswer) => void;
}): Send {
  const { functions, time, plan, fraction, cutZone, onTurn, onAnswer } = options;
  const latencyMs = (): number => LATENCY_MIN_MS + fraction() * (LATENCY_MAX_MS - LATENCY_MIN_MS);

  async function serve(request: EndpointRequest): Promise<EndpointAnswer> {
    const outage = request.door === 'url' ? 'urlOutage' : 'apiOutage';
    const severity = plan.severity(outage);
    if (severity > 0) {
      plan.count(outage);
      if (outage === 'apiOutage') return UNAVAILABLE;
      if (severity < THROTTLING_BELOW) return THROTTLED;
      await time.sleep(TIMEOUT_MS);
      return NO_ANSWER;
    }
    const name = isRenewal(request) ? 'heartbeat' : 'api';
    const arrivedAtMs = time.nowMs();
    const outcome = await functions.invoke(name, request.who, ({ endpoint }) => {
      onTurn(request, time.nowMs() - arrivedAtMs);
      return endpoint.send(request);
    });
    if (outcome.kind !== 'done') return UNAVAILABLE;
    onAnswer(request, outcome.value);
    return outcome.value;
  }

  const isCut = ({ zone }: Sender): boolean => {
    if (zone === undefined) return false;
    if (plan.severity('siteCut') > 0) {
      plan.count('siteCut');
      return true;
    }
    if (plan.severity('zoneCut') === 0 || zone !== cutZone()) return false;
    plan.count('zoneCut');
    return true;
  };

  return async (request, sender) => {
    const isMachine = sender.zone !== undefined;
    if (sender.isGone()) return never();
    await time.sleep(latencyMs());
    if (isCut(sender) || (isMachine && plan.strikes('lostBeats', 0.5))) {
      // The request is lost. Without a partition half of them are served, and only the response is lost.
      if (!isCut(sender) && plan.fraction('lostBeats') < 0.5) void serve(request);
      await time.sleep(TIMEOUT_MS);
      return sender.isGone() ? never() : NO_ANSWER;
    }
    if (isMachine && plan.strikes('duplicateBeats', 0.5)) {
      time.after(plan.fraction('duplicateBeats') * DUPLICATE_AFTER_MAX_MS, () => void serve(request));
    }
    if (isMachine && plan.strikes('lateBeats', 0.3)) {
      time.after(plan.fraction('lateBeats') * LATE_MAX_MS, () => void serve(request));
      await time.sleep(TIMEOUT_MS);
      return sender.isGone() ? never() : NO_ANSWER;
    }
    const answer = await serve(request);
    await time.sleep(latencyMs());
    return sender.isGone() ? never() : answer;
  };
}
