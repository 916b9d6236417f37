/** The way of a request from whoever sends it to the function that serves it, and back. */
import type { EndpointAnswer, EndpointRequest } from '../endpoint.ts';
import { never, type VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import type { Functions } from './processes.ts';

/** As endpoint.ts routes them: renewals are the heartbeat's. */
const HEARTBEAT_PATH = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases\/[^/]+$/;
const isBeat = ({ method, path }: EndpointRequest): boolean =>
  (method === 'PUT' || method === 'PATCH') && HEARTBEAT_PATH.test(path);

const WAY_MIN_MS = 5;
const WAY_MAX_MS = 40;
/** A machine waits so long for an answer. */
const PATIENCE_MS = 3_000;
const LATE_MAX_MS = 15_000;
const DUPLICATE_AFTER_MAX_MS = 4_000;

const NO_ANSWER: EndpointAnswer = { status: 504, body: { kind: 'Status', message: 'no answer' } };
const UNAVAILABLE: EndpointAnswer = { status: 503, body: { kind: 'Status', message: 'the endpoint is out' } };

/** Who sends, as far as the network is concerned. */
export interface Sender {
  /** Absent: not a machine, and none of its cuts befall it. */
  readonly zone?: string;
  /** It was switched off meanwhile: nothing it waits for ever comes. */
  isGone(): boolean;
}

export type Send = (request: EndpointRequest, sender: Sender) => Promise<EndpointAnswer>;

export function faultyNetwork(options: {
  readonly functions: Functions;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  /** The zone that a zone cut cuts off, while there is one. */
  readonly cutZone: () => string | undefined;
}): Send {
  const { functions, time, plan, fraction, cutZone } = options;
  const way = (): number => WAY_MIN_MS + fraction() * (WAY_MAX_MS - WAY_MIN_MS);

  async function serve(request: EndpointRequest): Promise<EndpointAnswer> {
    if (plan.severity('apiOutage') > 0) {
      plan.count('apiOutage');
      return UNAVAILABLE;
    }
    const name = isBeat(request) ? 'heartbeat' : 'api';
    const outcome = await functions.invoke(name, request.who, ({ endpoint }) => endpoint.send(request));
    return outcome.kind === 'done' ? outcome.value : UNAVAILABLE;
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
    await time.sleep(way());
    if (isCut(sender) || (isMachine && plan.strikes('lostBeats', 0.5))) {
      // The request is lost; or, half of the time and without a cut, its answer.
      if (!isCut(sender) && plan.fraction('lostBeats') < 0.5) void serve(request);
      await time.sleep(PATIENCE_MS);
      return sender.isGone() ? never() : NO_ANSWER;
    }
    if (isMachine && plan.strikes('duplicateBeats', 0.5)) {
      time.after(plan.fraction('duplicateBeats') * DUPLICATE_AFTER_MAX_MS, () => void serve(request));
    }
    if (isMachine && plan.strikes('lateBeats', 0.3)) {
      time.after(plan.fraction('lateBeats') * LATE_MAX_MS, () => void serve(request));
      await time.sleep(PATIENCE_MS);
      return sender.isGone() ? never() : NO_ANSWER;
    }
    const answer = await serve(request);
    await time.sleep(way());
    return sender.isGone() ? never() : answer;
  };
}
