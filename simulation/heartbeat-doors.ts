/**
 * The ways of a heartbeat: the HTTP API, and the URL of function heartbeat. A third of the machines uses only the API,
 * as a kubelet does. A third uses the URL that an answer names, and the API for a minute after a failure: that is the
 * agent's own code (agent/app/heartbeat-door.ts) on virtual time. A third can only reach the URL.
 */
import { withHeartbeatDoor } from '../agent/app/heartbeat-door.ts';
import type { KubeApi } from '../agent/ports/kube-api.ts';
import { isRenewal } from '../server/routes.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import { answerOf, apiOver, requestOf } from './kube-requests.ts';
import { hashOf } from './seeded-random.ts';

export const SIMULATED_URL = 'https://heartbeat.sim';
const USES = ['api', 'both', 'url'] as const;
export type DoorUse = (typeof USES)[number];

export const doorUseOf = (seed: number, name: string): DoorUse =>
  USES[hashOf(`${seed} door of ${name}`) % USES.length]!;

export type SendRequest = (request: EndpointRequest) => Promise<EndpointAnswer>;

/** @param who sends all these requests */
export function throughDoors(send: SendRequest, use: DoorUse, who: string, nowMs: () => number): SendRequest {
  if (use === 'api') return send;
  if (use === 'url') return (request) => send(isRenewal(request) ? { ...request, door: 'url' } : request);
  const open = (door?: 'url'): KubeApi => apiOver((request) => send({ ...request, ...(door && { door }) }), who);
  const api = withHeartbeatDoor({ api: open(), open: () => open('url'), monotonicMs: nowMs });
  return async (request) => (isRenewal(request) ? answerOf(await api.send(requestOf(request))) : send(request));
}
