/**
 * The ways of a heartbeat: the HTTP API, and the URL of function heartbeat. A third of the machines uses only the API, as a
 * kubelet does. A third uses the URL that an answer names, and the API for a minute after a failure, as the agent does. A
 * third can only reach the URL.
 */
import { heartbeatUrlOf } from '../agent/rules/lease.ts';
import { type EndpointAnswer, type EndpointRequest, isRenewal } from './endpoint.ts';
import { hashOf } from './seeded-random.ts';

export const SIMULATED_URL = 'https://heartbeat.sim';
/** After a failure the URL is not used for this long. Milliseconds, as in the agent. */
const NOT_USED_MS = 60_000;

const USES = ['api', 'both', 'url'] as const;
export type DoorUse = (typeof USES)[number];

export const doorUseOf = (seed: number, name: string): DoorUse =>
  USES[hashOf(`${seed} door of ${name}`) % USES.length]!;

export type SendRequest = (request: EndpointRequest) => Promise<EndpointAnswer>;

export function throughDoors(send: SendRequest, use: DoorUse, nowMs: () => number): SendRequest {
  if (use === 'api') return send;
  if (use === 'url') return (request) => send(isRenewal(request) ? { ...request, door: 'url' } : request);
  let isNamed = false;
  let notUsedUntilMs = 0;
  return async (request) => {
    if (!isRenewal(request)) return send(request);
    if (isNamed && nowMs() >= notUsedUntilMs) {
      const answer = await send({ ...request, door: 'url' });
      if (answer.status !== 429 && answer.status < 500) return answer;
      notUsedUntilMs = nowMs() + NOT_USED_MS;
    }
    const answer = await send(request);
    if (answer.status === 200) isNamed = heartbeatUrlOf(answer.body) !== undefined;
    return answer;
  };
}
