/** What all people of a simulation share: they send requests as the operator, at random times. */
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';
import type { Send } from './faults/faulty-network.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface PeopleOptions {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly log: (subject: string, text: string) => void;
}

export const MERGE_PATCH = 'application/merge-patch+json';

type OperatorRequest = Omit<EndpointRequest, 'who'>;

export const sendAsOperator = (send: Send, request: OperatorRequest): Promise<EndpointAnswer> =>
  send({ who: OPERATOR, ...request }, { isGone: () => false });

/** A merge patch of a Node. */
export const patchNode = (send: Send, name: string, body: object, subresource = ''): Promise<EndpointAnswer> =>
  sendAsOperator(send, {
    method: 'PATCH',
    path: `/api/v1/nodes/${name}${subresource}`,
    body,
    contentType: MERGE_PATCH,
  });

/** Runs it again and again, with a random wait before each time. Milliseconds. */
export async function repeatRandomly(
  { time, fraction }: Pick<PeopleOptions, 'time' | 'fraction'>,
  wait: { readonly leastMs: number; readonly meanMs: number },
  act: () => Promise<void>,
): Promise<void> {
  for (;;) {
    await time.sleep(wait.leastMs - Math.log(1 - fraction()) * wait.meanMs);
    await act();
  }
}
