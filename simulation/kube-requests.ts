/** Requests and answers of the agent's own code, as those of the simulated endpoint. */
import type { KubeAnswer, KubeApi, KubeRequest } from '../agent/ports/kube-api.ts';
import { defined } from '../shared/defined.ts';
import type { EndpointAnswer, EndpointRequest } from './endpoint.ts';

export const NO_ANSWER: EndpointAnswer = { status: 504, body: { kind: 'Status', message: 'no answer' } };

export function endpointRequest(who: string, request: KubeRequest): EndpointRequest {
  const { method, body, contentType } = request;
  const [path = '', search] = request.path.split('?', 2);
  const query = search === undefined ? undefined : Object.fromEntries(new URLSearchParams(search));
  return { who, method, path, body, ...defined({ contentType, query }) };
}

/** `method` is one that the agent uses. */
export const requestOf = ({ method, path, body, contentType }: EndpointRequest): KubeRequest => ({
  method: method as KubeRequest['method'],
  path,
  body,
  ...defined({ contentType }),
});

export const answerOf = (answer: KubeAnswer): EndpointAnswer =>
  answer.kind === 'answered'
    ? {
        status: answer.status,
        body: answer.body,
        ...defined({ isRepeated: answer.isRepeated, isRelayed: answer.isRelayed }),
      }
    : NO_ANSWER;

export const answered = ({ status, body, isRepeated }: EndpointAnswer): KubeAnswer => ({
  kind: 'answered',
  status,
  body,
  ...defined({ isRepeated }),
});

export const kubeApi = (send: KubeApi['send']): KubeApi => ({ send, reconnect: () => undefined });

/** A client that sends as `who`. */
export const apiOver = (send: (request: EndpointRequest) => Promise<EndpointAnswer>, who: string): KubeApi =>
  kubeApi(async (request) => answered(await send(endpointRequest(who, request))));
