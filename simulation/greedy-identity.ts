/**
 * A machine that sends dozens of costly heartbeats and API requests at a time with credentials of its own, and sends
 * the next one when one is answered. Meanwhile functions heartbeat and api have few environments, as in local mode and
 * in an account with a low limit. The share of the time per identity must leave them to the others (laws/shares.ts).
 *
 * It has no Node, and its bodies are invalid: it changes nothing that another law looks at.
 */

import type { FunctionName } from '../functions/function-list.ts';
import { isRenewal } from '../server/routes.ts';
import { NODE_USER_PREFIX } from '../shared/access/authorize.ts';
import type { RequestThrottle } from '../shared/access/request-throttle.ts';
import type { Clock } from '../shared/clock.ts';
import type { ReadYaml } from '../shared/kubernetes/request-body.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import type { Functions } from './faults/processes.ts';
import { type SimSetup, START_MS } from './sim-setup.ts';

export const GREEDY = 'greedy';
const GREEDY_USER = `${NODE_USER_PREFIX}${GREEDY}`;
/** Computing of one request of it. Milliseconds. */
export const GREEDY_COST_MS = { heartbeat: 250, api: 500 } as const;
/** The number of each of the two requests. */
const AT_ONCE = 80;
/** Between an answer and the next request. Milliseconds. */
const PAUSE_MS = 300;
/** The simulation has to serve hundreds of its requests per second. Milliseconds. */
const GREEDY_MS_MAX = 6_000;
/** The number for heartbeat and for api, meanwhile. */
const ENVIRONMENTS = 8;

/** Computes for so long in a process: its time passes. */
type Spend = (ms: number) => Promise<void>;

/** Each heartbeat of the greedy identity that is admitted computes. */
export const costlyHeartbeats = (throttle: RequestThrottle, spend: Spend, clock: Clock): RequestThrottle => ({
  begin(nowMs, isTimed) {
    const visit = throttle.begin(nowMs, isTimed);
    let isCostly = false;
    return {
      ...visit,
      admit(user) {
        visit.admit(user);
        isCostly = user.username === GREEDY_USER;
      },
      async end(endMs) {
        if (isCostly) await spend(GREEDY_COST_MS.heartbeat);
        await visit.end(isCostly ? clock.nowMs() : endMs);
      },
    };
  },
});

/** The same for its bodies at the API, which are read after the request is admitted. */
export const costlyYaml =
  (readYaml: ReadYaml, spend: Spend): ReadYaml =>
  async (text) => {
    if (text.includes(GREEDY)) await spend(GREEDY_COST_MS.api);
    return readYaml(text);
  };

/** Only without other faults: they occupy environments as well. */
export const environmentsDuringGreed =
  (plan: FaultPlan) =>
  (name: FunctionName): number | undefined =>
    (name === 'heartbeat' || name === 'api') && isGreedy(plan) ? ENVIRONMENTS : undefined;

const isGreedy = (plan: FaultPlan): boolean => plan.severity('costlyRequests') > 0 && plan.calmSinceMs() !== undefined;

const REQUESTS: readonly EndpointRequest[] = [
  {
    who: GREEDY,
    method: 'PATCH',
    path: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${GREEDY}`,
    contentType: 'application/merge-patch+json',
    body: { spec: { leaseDurationSeconds: 'many' } },
  },
  {
    who: GREEDY,
    method: 'POST',
    path: '/api/v1/namespaces/default/events',
    contentType: 'application/yaml',
    body: { kind: GREEDY },
  },
];

/** Its requests do not pass through the faults of the network. */
export function beGreedy(
  { time, plan }: SimSetup,
  functions: Functions,
  onAnswer: (request: EndpointRequest, answer: EndpointAnswer) => void,
): void {
  const send = async (request: EndpointRequest, untilMs: number): Promise<void> => {
    const name = isRenewal(request) ? 'heartbeat' : 'api';
    while (time.nowMs() < untilMs) {
      plan.count('costlyRequests');
      const outcome = await functions.invoke(name, GREEDY, ({ endpoint }) => endpoint.send(request));
      if (outcome.kind === 'done') onAnswer(request, outcome.value);
      await time.sleep(PAUSE_MS);
    }
  };
  for (const { fromMs, untilMs } of plan.episodes('costlyRequests')) {
    const lastMs = Math.min(untilMs, fromMs + GREEDY_MS_MAX);
    time.after(fromMs - START_MS, () => {
      for (const request of REQUESTS) {
        for (let sender = 0; sender < AT_ONCE; sender += 1) void send(request, lastMs);
      }
    });
  }
}
